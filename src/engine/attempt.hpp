#pragma once

#include <asio/awaitable.hpp>
#include <optional>
#include <vector>

#include "core/decision.hpp"
#include "core/lease.hpp"
#include "core/queue.hpp"
#include "engine/server_set.hpp"
#include "engine/interrupt.hpp"
#include "engine/queue_member.hpp"
#include "support/result.hpp"

namespace redlock {

/// A lease on the same key that this process runs under already, as far as it knows.
struct ParentClaim {
  LeaseId id;
  Token token;
  Fence fence;
  bool guarded;  ///< an ancestor of ours keeps it
  Hold hold{};
};

/// What is to be locked.
struct AcquireOrder {
  Resource resource;
  Ttl ttl;
  Owner owner;
  Duration needed_validity;  ///< a lease that would be over sooner is no use and counts as a failure
  std::optional<ParentClaim> parent_claim{};
  Mode mode{};
};

/// How an attempt fits into a wait.
struct Approach {
  const QueueMember* member = nullptr;       ///< where we stand in the queue if it fails; null: nowhere, and we get nothing that others wait for
  std::optional<std::size_t> slot{};  ///< the one wanted, of several
};

/// A server that granted, but started so lately that its vote does not count yet.
struct RestartedVote {
  std::string server;
  Duration up;    ///< since its start
  Duration left;  ///< until its vote counts
};

/// Why one attempt did not give a lease. Everything it may have left at the servers was taken back.
struct AttemptFailure {
  enum class Why {
    busy,         ///< certainly held by another lease
    maybe_busy,   ///< held, or a simultaneous attempt that fails as well: see AcquireDecision
    split,        ///< simultaneous attempts
    unavailable,  ///< no quorum of answers
    denied,
    misconfigured,
    duplicate,  ///< the same server was given twice
    guarded,    ///< nothing but the restart guard is in the way (R7)
    too_slow,   ///< granted, but the answers took so long that too little of the lease was left
    interrupted,
    parent_too_weak,  ///< a lease that encloses us shares it, and the order wants more
    parent_too_short,  ///< a lease that encloses us has it, and ends too soon for the order
  };
  Why why;
  std::optional<Holder> holder;       ///< the main other lease, when there is one
  std::vector<ServerFault> faults;    ///< of the servers that gave no vote
  Duration round_trip{};              ///< from the question to the decision
  Duration answered_within{};         ///< from the question to the last answer: without the silent servers
  std::vector<RestartedVote> restarted{};  ///< for Why::guarded: the servers that would make the quorum, the first to count first
  bool goes_first = false;            ///< in a split: we have the smallest lease id of those seen, so we try again at once (R8)
  bool granted_some = false;          ///< a server had it for us
  QueueView queue{};
  std::vector<bool> silent{};          ///< servers that did not answer, by index
  std::vector<bool> forgotten{};       ///< servers that had us in the queue no more: they called us and we did not hear
  std::vector<ServerFault> unsubscribed{};  ///< of a waiter: the servers that cannot call it, so that it looks again and again
};

/// One attempt to acquire: a fresh token, all servers at once, decided as soon as it is certain, the fence written back to a quorum, and
/// everything taken back if it fails (PROTOCOL R1-R3, R6). The interrupt is looked at while it waits.
/// Source of the algorithm: https://redis.io/docs/latest/develop/use/patterns/distributed-locks/ ("The Redlock algorithm").
asio::awaitable<Result<Lease, AttemptFailure>> attempt(ServerSet& server_set, AcquireOrder order, Interrupt& interrupt,
                                                       Approach approach = {});

}  // namespace redlock
