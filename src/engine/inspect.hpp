#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/decision.hpp"
#include "engine/server_set.hpp"

namespace redlock {

/// Rounds that wait for every server's vote, within the server timeout: for people, who want to
/// know what each server says.

/// Tells who holds the resource, server by server; summarize() combines the votes.
asio::awaitable<std::vector<InspectVote>> inspect(ServerSet& server_set, Resource resource,
                                                  RunsTold runs = RunsTold::last);

/// What inspect_all() calls with the votes on one resource.
using Inspected = std::function<void(const Resource&, std::vector<InspectVote>)>;

/// The same for several resources, some at a time: a server that does not answer delays all of them
/// hardly longer than one. Calls `inspected` for each as soon as it may, in their order, so that
/// the votes on many need not be kept.
asio::awaitable<void> inspect_all(ServerSet& server_set, const std::vector<Resource>& resources,
                                  RunsTold runs, Inspected inspected);

/// Counts a run that did not run its command, at every server that answers.
asio::awaitable<std::vector<SkipVote>> count_skip(ServerSet& server_set, Resource resource,
                                                  std::string why);

/// Breaks the lease that holds the lock. With `only_if` it breaks only the lease with that fence.
/// Once a quorum did so, it also breaks the same lease on servers that show another fence. A key
/// that is no lease of ours is left alone.
asio::awaitable<std::vector<BreakVote>> break_lock(ServerSet& server_set, BreakRequest request);

/// After it: breaks what the votes name that is no lease of ours, each server what it named itself.
asio::awaitable<std::vector<BreakVote>> break_foreign(ServerSet& server_set, BreakRequest request,
                                                      std::vector<BreakVote> votes);

/// Asks the holder of a lease to stop what runs under it (PROTOCOL R12), or only looks.
asio::awaitable<std::vector<InspectVote>> ask_to_stop(ServerSet& server_set, AskRequest request);

struct ListingRequest {
  Listed listed = Listed::held;
  std::string prefix{};            ///< of the keys
  bool wants_other_key = false;    ///< tell Listing::other_key
  Instant until = Instant::max();  ///< the listing ends then, with what was found so far
  /// Called now and then with how far it has come at all servers together; may be null.
  std::function<void(const ListProgress&)> progress{};
};

struct Listing {
  std::vector<Resource> resources;  ///< sorted, each once
  std::vector<ServerFault> faults;
  std::vector<ServerFault> skipped;  ///< keys that may be locks but could not be read, one by one
  std::optional<std::string> other_key{};  ///< without resources: a key of another client
};

/// Every resource that this tool has locked, or used lately, on any of the servers. A server has
/// the server timeout for each part of its list.
asio::awaitable<Listing> list_resources(ServerSet& server_set, ListingRequest request);

}  // namespace redlock
