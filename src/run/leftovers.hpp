#pragma once

#include "run/servers.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// For the end of a command, when everything has been said: what servers have not confirmed (see ServerSet::leftovers) is released by a
/// process of its own, on connections of its own, until they confirm it or it has expired there. Nobody waits for that process: it has no
/// terminal, no standard streams and no descriptor of ours. Where nothing is left over, or no process can be had, nothing happens.
void clear_away_behind(const SessionOptions& options, const ServerOptions& servers, Session& session);

}  // namespace redlock::run
