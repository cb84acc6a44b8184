#pragma once

#include <asio/awaitable.hpp>
#include <optional>
#include <variant>

#include "engine/attempt.hpp"
#include "engine/queue_member.hpp"
#include "engine/wait_state.hpp"

namespace redlock {

/// One attempt failed; next() will try again.
struct StillWaiting {
  AttemptFailure failure;
};

/// The wait is over without a lock. `why` says which exit code fits; a split that never resolved comes as busy.
struct GaveUp {
  AttemptFailure failure;
};

/// Acquires, with as many attempts as the policy allows, and tells after each how it went:
///
///     Waiter waiter(…);
///     for (;;) { step = co_await waiter.next(); if it is a Lease or GaveUp: done; StillWaiting: show it }
///
/// For a lock that is held it waits in the queue: first in, first out, called by whoever makes room (PROTOCOL Q). It looks by itself, too, when
/// a lease ends or a call may have been lost; and where a foreign client holds the lock, which calls nobody, the first in the queue looks after
/// each jittered retry delay. Votes that were split by simultaneous attempts are tried again for up to a second even when the wait is zero
/// (R8); an outage is borne for `unavailable_wait`; servers that restarted lately are waited for as a lock that is held (R7).
class Waiter {
 public:
  Waiter(ServerSet& server_set, AcquireOrder order, WaitPolicy policy, Interrupt& interrupt);

  /// One that ends without a lease leaves the line.
  asio::awaitable<std::variant<Lease, StillWaiting, GaveUp>> next();

 private:
  /// Until it is time for the next attempt.
  asio::awaitable<void> rest();
  asio::awaitable<void> pause();

  /// Does what a change of the state asks for, but for the subscription.
  void enter(const WaitState& next, const AttemptFailure& failure);
  [[nodiscard]] bool is_queued() const { return state_.queue == WaitState::Queue::queued; }

  ServerSet& server_set_;
  AcquireOrder order_;
  WaitPolicy policy_;
  Interrupt& interrupt_;
  Instant give_up_at_;
  WaitState state_;
  std::optional<QueueMember> member_;       ///< once we have a ticket
  std::optional<std::size_t> slot_;  ///< the one to ask for
  Duration answered_within_{};       ///< of the last attempt
  unsigned partial_calls_ = 0;       ///< notifications in a row that were no quorum's
  std::optional<Instant> try_at_;    ///< empty before the first attempt
};

}  // namespace redlock
