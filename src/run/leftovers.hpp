#pragma once

#include "run/servers.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// For the end of a command, after its last output: a process of its own releases what servers have
/// not confirmed (see ServerSet::leftovers), on connections of its own, until they confirm it or it
/// has expired there. No process waits for that one: it has no terminal, no standard streams and no
/// descriptor of ours. Where every release is confirmed, or no process can be forked, nothing
/// happens.
void clear_away_behind(const SessionOptions& options, const ServerOptions& servers,
                       Session& session);

}  // namespace redlock::run
