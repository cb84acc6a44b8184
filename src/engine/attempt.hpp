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

/// A lease on the same key under which this process already runs, according to its environment.
struct ParentClaim {
  LeaseId id;
  Token token;
  Fence fence;
  Hold hold{};
  /// Whether an ancestor of ours that keeps or uses it still lives. Null: no such ancestor is
  /// known.
  std::function<bool()> guard_lives{};
};

/// The state of a run with --supersede or --replace. All of its attempts share it, also after it
/// released the lock while stopped and waits again. Of several such runs the newest wins
/// (PROTOCOL Q9).
struct Supersession {
  bool replaces = false;  ///< --replace: it stops an older holder with --replace, and as the holder
                          ///< may be stopped by a newer run (PROTOCOL Q11)
  std::optional<Place> place;     ///< nullopt: it has no ticket yet
  std::optional<Instant> polled;  ///< when the last round began that a quorum answered
};

/// What to lock, and for whom.
struct AcquireOrder {
  Resource resource;
  Ttl ttl;
  Owner owner;
  Duration needed_validity;  ///< a grant with less time left counts as a failure
  std::optional<ParentClaim> parent_claim{};
  Mode mode{};
  std::shared_ptr<Supersession> supersession{};  ///< null: it neither supersedes older waiters nor
                                                 ///< is superseded by newer ones
  std::optional<Duration> once_per{};  ///< find out whether a run succeeded that started within it
  std::optional<std::size_t> max_waiting{};  ///< do not wait if so many others wait; at least one
  std::optional<Instant> until{};  ///< the lease ends then, so an attempt asks for what is left;
                                   ///< the ttl is that of the first
};

/// How an attempt relates to the wait that it is part of.
struct AttemptOptions {
  const QueueMember* member = nullptr;  ///< our queue entry if the attempt fails; null: we are not
                                        ///< queued, and get no lock that others wait for
  Slots slots{};                        ///< the slots to request; empty: the lowest free ones
  const QueueMember* unqueued_entry = nullptr;  ///< without `member`: our entry, which the servers
                                                ///< compare with other waiters' and with
                                                ///< dismissals but do not queue
  /// Called with each server that does not answer, possibly after the attempt has ended; may be
  /// null.
  std::function<void(std::size_t server)> on_silence{};
};

/// A server that granted, but restarted so recently that its vote does not count yet.
struct RestartedVote {
  std::string server;
  Duration up;    ///< since its start
  Duration left;  ///< until its vote counts
};

/// Why an attempt failed. Whatever it may have left on the servers is undone in the background.
struct AttemptFailure {
  AcquireDecision why;              ///< neither undecided nor granted
  std::optional<Holder> holder;     ///< the main other lease, if there is one
  std::vector<ServerFault> faults;  ///< of the servers without a vote
  Duration round_trip{};            ///< from the question to the decision
  Duration answered_within{};  ///< from the question to the last answer; ignores silent servers
  std::vector<RestartedVote> restarted{};  ///< if guarded: the servers that would complete the
                                           ///< quorum, ordered by when their votes count
  bool goes_first = false;    ///< in a split: our lease id is the smallest seen, so we retry at
                              ///< once (R8)
  bool granted_some = false;  ///< at least one server granted the lock
  QueueView queue{};
  bool may_share = false;  ///< the holders would share it with us: only earlier waiters keep us out
  std::vector<bool> forgotten{};  ///< by server: it dropped our queue entry, so its notification
                                  ///< did not reach us
  std::vector<ServerFault> unsubscribed{};  ///< of a waiter: the servers that cannot notify it, so
                                            ///< that it must poll
};

/// One attempt to acquire (PROTOCOL R1-R3, R6). It draws a new token, asks all servers at once, and
/// decides as soon as the result is certain. A granted lease's fence is written back to a quorum;
/// a failed attempt is undone. The interrupt can end the attempt at any time. An attempt that meets
/// a hold restores it where it was lost (PROTOCOL F2). Source of the algorithm:
/// https://redis.io/docs/latest/develop/use/patterns/distributed-locks/
/// ("The Redlock algorithm").
asio::awaitable<Result<Lease, AttemptFailure>> attempt(ServerSet& server_set, AcquireOrder order,
                                                       Interrupt& interrupt,
                                                       AttemptOptions options = {});

}  // namespace redlock
