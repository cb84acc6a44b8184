#pragma once

#include <asio/awaitable.hpp>
#include <optional>
#include <variant>

#include "engine/attempt.hpp"
#include "engine/queue_member.hpp"
#include "engine/wait_state.hpp"

namespace redlock {

/// One attempt failed; next() tries again.
struct StillWaiting {
  AttemptFailure failure;
};

/// The wait ended without a lock. `why` says which exit code fits; a split that never resolved is
/// reported as busy.
struct GaveUp {
  AttemptFailure failure;
};

/// Acquires, with as many attempts as the policy allows, and reports the result of each:
///
///     Waiter waiter(…);
///     for (;;) { step = co_await waiter.next(); if it is a Lease or GaveUp: done; StillWaiting:
///     show it }
///
/// For a lock that is held it waits in the queue: first in, first out, notified when the lock
/// becomes free (PROTOCOL Q). It also polls when a lease ends or a notification may have been lost.
/// Where a foreign client holds the lock, which notifies no waiter, the first waiter polls after
/// each jittered retry delay. Votes that simultaneous attempts split are tried again for up to a
/// second even when the wait is zero (R8). An outage is tolerated for `unavailable_wait`. Recently
/// restarted servers are waited for like a lock that is held (R7).
class Waiter {
 public:
  Waiter(ServerSet& server_set, AcquireOrder order, WaitPolicy policy, Interrupt& interrupt);

  /// A waiter that ends without a lease leaves the queue.
  asio::awaitable<std::variant<Lease, StillWaiting, GaveUp>> next();

 private:
  /// Waits until it is time for the next attempt.
  asio::awaitable<void> rest();
  asio::awaitable<void> pause();

  /// The attempt of a waiter that supersedes others, and so needs a ticket before it may be granted
  /// the lock.
  asio::awaitable<Result<Lease, AttemptFailure>> attempt_with_ticket(Approach& approach);

  /// Whether a newer waiter may have come and gone, and no server remembers it.
  [[nodiscard]] bool stood_still_too_long() const;
  void take_ticket(Ticket ticket);

  /// Carries out a change of the state, except the subscription.
  void enter(const WaitState& next, const AttemptFailure& failure);
  [[nodiscard]] bool is_queued() const { return state_.queue == WaitState::Queue::queued; }

  ServerSet& server_set_;
  AcquireOrder order_;
  WaitPolicy policy_;
  Interrupt& interrupt_;
  Instant give_up_at_;
  WaitState state_;
  std::optional<QueueMember> member_;   ///< set once we have a ticket
  std::optional<std::size_t> slot_;     ///< the slot to ask for
  Duration answered_within_{};          ///< of the last attempt
  unsigned partial_notifications_ = 0;  ///< notifications in a row that were no quorum's
  std::optional<Instant> try_at_;       ///< empty before the first attempt
};

}  // namespace redlock
