#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/decision.hpp"
#include "core/lease.hpp"
#include "core/queue.hpp"
#include "engine/queue_member.hpp"
#include "engine/server_set.hpp"
#include "support/clock.hpp"
#include "support/result.hpp"

namespace redlock {

/// A lease on the same key under which this process already runs, as far as it knows.
struct ParentClaim {
  LeaseId id;
  Token token;
  Fence fence;
  bool guarded;  ///< an ancestor of ours keeps it
  Hold hold{};
};

/// A waiter with --supersede or --replace, in all of its attempts, also when it gave up its turn
/// and waits again: of several the newest wins (PROTOCOL Q9).
struct Supersession {
  bool replaces = false;  ///< it stops an older holder with --replace, and a newer one may stop
                          ///< it when it is the holder (PROTOCOL Q11)
  std::optional<Place> place;     ///< nothing: it has no ticket yet
  std::optional<Instant> polled;  ///< when the last round began that a quorum answered
};

/// What is to be locked.
struct AcquireOrder {
  Resource resource;
  Ttl ttl;
  Owner owner;
  Duration needed_validity;  ///< a lease that ends sooner is no use and counts as a failure
  std::optional<ParentClaim> parent_claim{};
  Mode mode{};
  std::shared_ptr<Supersession> supersession{};  ///< as a waiter it supersedes older ones, and may
                                                 ///< be superseded; null: neither
  std::optional<Duration> once_per{};  ///< look whether a run succeeded that started within it
  std::optional<std::size_t> max_waiting{};  ///< do not wait if so many others do; at least one
};

/// How an attempt fits into a wait.
struct AttemptOptions {
  const QueueMember* member = nullptr;  ///< our queue entry if the attempt fails; null: we are not
                                        ///< queued, and get no lock that others wait for
  Slots slots{};                        ///< those wanted; empty: the lowest free ones
  const QueueMember* unqueued_entry = nullptr;  ///< without `member`: our entry, which is shown and
                                                ///< not queued, so that a newer waiter supersedes
                                                ///< us there
  /// Called with each server that does not answer, also when the attempt has ended by then; null:
  /// it does not matter.
  std::function<void(std::size_t server)> on_silence{};
};

/// A server that granted, but restarted so recently that its vote does not count yet.
struct RestartedVote {
  std::string server;
  Duration up;    ///< since its start
  Duration left;  ///< until its vote counts
};

/// Why one attempt gave no lease. Whatever it may have left on the servers is undone.
struct AttemptFailure {
  AcquireDecision why;              ///< neither undecided nor granted
  std::optional<Holder> holder;     ///< the main other lease, if there is one
  std::vector<ServerFault> faults;  ///< of the servers without a vote
  Duration round_trip{};            ///< from the question to the decision
  Duration answered_within{};  ///< from the question to the last answer, without the silent servers
  std::vector<RestartedVote> restarted{};  ///< when guarded: the servers that would make the
                                           ///< quorum, ordered by when their votes count
  bool goes_first = false;    ///< in a split: we have the smallest lease id of those seen,
                              ///< so we try again at once (R8)
  bool granted_some = false;  ///< a server granted it to us
  QueueView queue{};
  std::vector<bool> forgotten{};  ///< servers that dropped our queue entry, by index: their
                                  ///< notification did not reach us
  std::vector<ServerFault> unsubscribed{};  ///< of a waiter: the servers that cannot notify it, so
                                            ///< that it polls
};

/// One attempt to acquire (PROTOCOL R1-R3, R6): a fresh token, all servers at once, decided as soon
/// as the result is certain. It writes the fence back to a quorum, and undoes everything if it
/// fails. The interrupt can end it at any time.
/// Source of the algorithm: https://redis.io/docs/latest/develop/use/patterns/distributed-locks/
/// ("The Redlock algorithm").
asio::awaitable<Result<Lease, AttemptFailure>> attempt(ServerSet& server_set, AcquireOrder order,
                                                       Interrupt& interrupt,
                                                       AttemptOptions options = {});

}  // namespace redlock
