#pragma once

#include <asio/awaitable.hpp>
#include <optional>
#include <vector>

#include "engine/server_set.hpp"

namespace redlock {

/// One release at every server, within the server timeout, as HeldLease::release() says.
/// `retention`: how long a server may keep the lease from now on; nullopt: unknown, so nothing is
/// repeated in the background. `leaves_tombstones`: if a server had the lease for longer than
/// request.tombstone_life, those where it was not are told in a second round.
asio::awaitable<std::vector<ReleaseVote>> release_at_all(ServerSet& server_set,
                                                         ReleaseRequest request,
                                                         std::optional<Duration> retention,
                                                         bool leaves_tombstones);

}  // namespace redlock
