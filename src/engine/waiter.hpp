#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "engine/attempt.hpp"
#include "engine/held_set.hpp"
#include "engine/queue_member.hpp"
#include "engine/wait_state.hpp"

namespace redlock {

/// A wait, or one attempt of it, failed.
struct WaitFailure {
  Resource resource;
  AttemptFailure failure;  ///< a split that never resolved is reported as busy
  bool final;              ///< the wait has ended without any lock; otherwise next() tries again
  std::optional<StopRequest> stop_request{};  ///< if a stop request ended the wait
};

/// The failure of a wait that a stop request ended, for a lock that it had already acquired.
WaitFailure stopped_by(const StopRequested& request);

/// Acquires a lock, with as many attempts as the policy allows, and returns the result of each:
///
///     Waiter waiter(…);
///     for (;;) { result = co_await waiter.next(); done if it is a lease or a final failure;
///                otherwise report it }
///
/// While the lock is held, it waits in the queue: first in, first out, notified when the lock
/// becomes free (PROTOCOL Q). It also polls when a lease ends or a notification may have been lost.
/// A foreign holder notifies no waiter, so the first waiter polls, with the jittered retry delay
/// between polls.
///
/// A split, caused by simultaneous attempts, is retried for up to a second even if the wait is zero
/// (R8). An outage is tolerated for `unavailable_wait`. Recently restarted servers are waited for
/// like a lock that is held (R7).
class Waiter {
 public:
  Waiter(ServerSet& server_set, AcquireOrder order, WaitPolicy policy, Interrupt& interrupt);

  /// The result of the next attempt, once it is time for it. After a final failure the waiter has
  /// left the queue.
  asio::awaitable<Result<Lease, WaitFailure>> next();

 private:
  /// Waits until it is time for the next attempt.
  asio::awaitable<void> rest();
  asio::awaitable<void> pause();

  /// The attempt of a waiter that supersedes others. It needs a ticket before it may be granted the
  /// lock.
  asio::awaitable<Result<Lease, AttemptFailure>> attempt_with_ticket(AttemptOptions& options);

  /// Whether our last poll is so long ago that a newer waiter may have come and gone, and no server
  /// remembers it.
  [[nodiscard]] bool polled_too_long_ago() const;
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
  Slots slots_;                         ///< the slots to request; empty: the lowest free ones
  Duration answered_within_{};          ///< of the last attempt
  unsigned partial_notifications_ = 0;  ///< successive notifications from less than a quorum
  NotificationPace pace_;
  std::optional<Instant> try_at_;  ///< empty before the first attempt
};

/// Acquires several locks, all or none: one after the other in the given order, with one wait for
/// all. Leases that it has acquired are kept alive while it waits for the next lock, and released
/// if it gives up. If one of them is lost, it starts over. If a stop request comes for one of them,
/// it raises the interrupt and gives up (PROTOCOL R12). A lock with a parent lease (ParentClaim) is
/// inherited or taken over, not acquired.
///
/// Clients that sort their keys cannot deadlock with each other: none of them waits for a smaller
/// key than those it holds.
///
///     SetWaiter waiter(…);
///     for (;;) { result = co_await waiter.next(); … as with a Waiter }
class SetWaiter {
 public:
  /// `orders`: at least one.
  SetWaiter(ServerSet& server_set, std::vector<AcquireOrder> orders, WaitPolicy policy,
            Interrupt& interrupt);

  asio::awaitable<Result<std::shared_ptr<HeldSet>, WaitFailure>> next();

  /// Ends the wait: leaves the queue, and releases the leases acquired so far.
  asio::awaitable<void> give_up();

 private:
  [[nodiscard]] const AcquireOrder& current() const { return orders_[set_->leases().size()]; }
  [[nodiscard]] bool is_good() const;
  asio::awaitable<bool> complete_with(Lease lease);
  [[nodiscard]] bool own_lease_unavailable(const AttemptFailure& failure) const;

  ServerSet& server_set_;
  std::vector<AcquireOrder> orders_;
  WaitPolicy policy_;
  Interrupt& interrupt_;
  Instant began_;
  std::shared_ptr<HeldSet> set_;
  std::optional<Waiter> waiter_;              ///< for the current order
  bool parent_unanswered_ = false;            ///< no quorum answered the last check of the parent
                                              ///< lease
  std::vector<ServerFault> parent_faults_{};  ///< of the servers that did not answer that check
};

}  // namespace redlock
