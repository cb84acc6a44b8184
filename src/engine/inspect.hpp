#pragma once

#include <asio/awaitable.hpp>
#include <optional>
#include <vector>

#include "core/decision.hpp"
#include "engine/server_set.hpp"

namespace redlock {

/// Rounds that wait for every server's vote, within the server timeout: for people, who want to know what each of them says.

/// Who holds the resource, server by server; summarize() puts them together.
asio::awaitable<std::vector<InspectVote>> inspect(ServerSet& server_set, Resource resource);

/// Takes the lock away from whoever holds it, as the request says: with `only_if`, where the lease still has that fence, and, once that was a
/// quorum, where the same lease shows another one.
asio::awaitable<std::vector<BreakVote>> break_lock(ServerSet& server_set, BreakRequest request);

struct Listing {
  std::vector<Resource> resources;  ///< sorted, each once
  std::vector<ServerFault> faults;
  std::vector<ServerFault> skipped;  ///< what may be locks, too, and could not be read, one by one
};

/// Every resource that this tool locked at any of the servers.
asio::awaitable<Listing> list_resources(ServerSet& server_set);

}  // namespace redlock
