#pragma once

#include "commands/servers.hpp"
#include "commands/session.hpp"

namespace redlock::commands {

/// Call it at the end of a command, after its last output. If servers have not confirmed every
/// release (see ServerSet::leftovers, ServerSet::leave), forks a process that retries, on its own
/// connections, until they confirm or the leases have expired there, but for ten minutes at most.
/// No process waits for it: it has no terminal, no standard streams, and none of our descriptors.
/// Does nothing when every release is confirmed, or the fork fails.
void release_leftovers(const SessionOptions& options, const ServerOptions& servers,
                       Session& session);

}  // namespace redlock::commands
