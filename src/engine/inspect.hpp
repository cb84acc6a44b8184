#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/decision.hpp"
#include "engine/server_set.hpp"

namespace redlock {

/// Rounds that wait for every server's vote, within the server timeout, so that the user sees what
/// each server reports.

/// Finds out who holds the resource, server by server; summarize() combines the votes.
asio::awaitable<std::vector<InspectVote>> inspect(ServerSet& server_set, Resource resource,
                                                  InspectScope scope = {});

/// Receives the votes on one resource from inspect_all().
using Inspected = std::function<void(const Resource&, std::vector<InspectVote>)>;

/// Inspects several resources, a limited number at a time: a silent server delays all of them
/// little longer than one. Restores the holds that it meets (PROTOCOL F2). Where a holder acquires
/// several keys, it inspects those that follow, too (Holder::waits_for). Calls `inspected` for each
/// resource, in the given order and as early as that order permits, so that the votes on many
/// resources need not be stored.
asio::awaitable<void> inspect_all(ServerSet& server_set, const std::vector<Resource>& resources,
                                  InspectScope scope, Inspected inspected);

/// Counts a run that did not run its command, on every server that answers.
asio::awaitable<std::vector<SkipVote>> count_skip(ServerSet& server_set, Resource resource,
                                                  std::string why);

/// Breaks the lease that holds the lock; with `only_if`, only the lease with that fence. Once a
/// quorum has broken it, it is also broken on servers that show it with another fence. A key that
/// is not a lease of this tool is left alone.
asio::awaitable<std::vector<BreakVote>> break_lock(ServerSet& server_set, BreakRequest request);

/// Follows break_lock(): on each server, breaks the foreign key that this server's vote names.
asio::awaitable<std::vector<BreakVote>> break_foreign(ServerSet& server_set, BreakRequest request,
                                                      std::vector<BreakVote> votes);

/// Inspects a lock, or the share in a slot of it, before something is done to it: retries for up to
/// a second while simultaneous attempts split the votes. `question` has no lease.
asio::awaitable<std::vector<InspectVote>> read_holder(ServerSet& server_set, AskRequest question);

/// Sends a stop request to the holder of a lease (PROTOCOL R12), or only inspects the lease.
asio::awaitable<std::vector<InspectVote>> ask_to_stop(ServerSet& server_set, AskRequest request);

/// The names of the servers that persist nothing. One that does not tell is not among them.
asio::awaitable<std::vector<std::string>> servers_that_persist_nothing(ServerSet& server_set);

struct ListingRequest {
  Listed listed = Listed::held;
  std::string prefix{};            ///< of the keys
  bool wants_other_key = false;    ///< fill in Listing::other_key
  Instant until = Instant::max();  ///< the listing ends then, with what was found so far
  /// Called now and then with the progress of all servers together; may be null.
  std::function<void(const ListProgress&)> progress{};
};

struct Listing {
  std::vector<Resource> resources;  ///< sorted, each once
  std::vector<ServerFault> faults;
  std::vector<ServerFault> skipped;  ///< one for each key that may be a lock but could not be read
  std::optional<std::string> other_key{};  ///< if there are no resources: a key of another client
};

/// Lists every resource that this tool has locked, or used recently, on any of the servers. Each
/// server has the server timeout for each part of its list.
asio::awaitable<Listing> list_resources(ServerSet& server_set, ListingRequest request);

}  // namespace redlock
