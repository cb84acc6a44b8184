#include "engine/wait_state.hpp"

#include <algorithm>

namespace redlock {
namespace {

using Queue = WaitState::Queue;

/// The longest attempt of another client: a second (the longest default server timeout), or our own
/// server timeout if it is longer, as all clients should use the same one. So an older lease does
/// not belong to an attempt that will undo itself.
constexpr Milliseconds max_attempt{1000};

/// How often to check, while only the restart guard prevents the grant, whether another server that
/// may vote has come back.
constexpr Milliseconds guard_poll_interval{1000};

/// After this many successive rounds in which no quorum answered, a waiter leaves the queue. If it
/// stayed, it would delay the waiters that reach a quorum (Q6).
constexpr unsigned max_outages_in_queue = 2;

/// How often to poll while it is undecided which waiters fit into a bounded queue.
constexpr Milliseconds contention_interval{50};

bool is_outage(AcquireDecision why) {
  return why == AcquireDecision::unavailable || why == AcquireDecision::too_slow;
}

bool is_final(AcquireDecision why) {
  return why == AcquireDecision::denied || why == AcquireDecision::misconfigured ||
         why == AcquireDecision::duplicate || why == AcquireDecision::interrupted ||
         why == AcquireDecision::superseded || why == AcquireDecision::dismissed;
}

bool has_ticket(Queue queue) {
  return queue != Queue::not_joined;
}

/// Whether the holder has held the lock for longer than any attempt lasts. Not so for a shared lock
/// with room: its leases may be old, but several attempts may compete for a free slot.
bool is_established(const AttemptFailure& failure, Duration server_timeout) {
  if (!failure.holder || !failure.holder->age) return false;
  const bool has_room = failure.holder->shared && failure.granted_some;
  return *failure.holder->age > std::max<Duration>(max_attempt, server_timeout) && !has_room;
}

/// Whether the lock is certainly held, or is held by a lease whose release will notify us, or is
/// offered to a waiter before us. That waiter cannot always acquire it, for example if its slot is
/// taken. If we kept retrying, we would notify it each time.
bool is_busy(const AttemptFailure& failure, Queue queue, Duration server_timeout) {
  if (failure.why != AcquireDecision::maybe_busy) return failure.why == AcquireDecision::busy;
  if (has_ticket(queue) && failure.queue.queued && failure.queue.offered) return true;
  if (is_established(failure, server_timeout)) return true;
  return has_ticket(queue) && failure.queue.queued && !failure.granted_some;
}

/// One decision. Its members are the inputs of after_failure().
class Transition {
 public:
  Transition(const WaitState& state, const AttemptFailure& failure, const WaitPolicy& policy,
             const WaitContext& context, const RandomBits& random)
      : state_(state), failure_(failure), policy_(policy), context_(context), random_(random) {}

  [[nodiscard]] WaitStep step() const {
    if (is_outage(failure_.why) || may_be_rotation()) return after_outage();
    if (is_final(failure_.why)) return {state_, std::nullopt, failure_.why};
    if (failure_.queue.room == Room::none) return leave_full_queue();
    if (failure_.queue.room == Room::contended && !wait_has_ended()) return after_contention();
    if (may_join(Queue::away)) return join(failure_.why);
    if (failure_.why == AcquireDecision::guarded) return after_guarded();
    const bool busy = is_busy(failure_, state_.queue, context_.server_timeout);
    if (may_join(Queue::not_joined) && failure_.queue.next_ticket)
      return join(busy ? AcquireDecision::busy : failure_.why);
    if (!busy) return after_split();
    return {{state_.queue, WaitState::Held{}}, after_busy(), AcquireDecision::busy};
  }

 private:
  [[nodiscard]] bool wait_has_ended() const { return context_.now >= context_.give_up_at; }

  /// Only once we are queued: who lacks a right for that learns so at once.
  [[nodiscard]] bool may_be_rotation() const {
    const bool was_queued = state_.queue == Queue::queued || state_.queue == Queue::away;
    return failure_.why == AcquireDecision::denied && policy_.password_may_change && was_queued;
  }

  [[nodiscard]] bool may_join(Queue from) const {
    return state_.queue == from && !wait_has_ended();
  }

  /// Retries at once: no server notifies the waiter until it is queued.
  [[nodiscard]] WaitStep join(AcquireDecision why) const {
    return {{Queue::joining, next_obstacle()}, context_.now, why};
  }

  /// A series of splits or outages continues while the waiter joins the queue: read-only servers
  /// report a holder, but then refuse the queue entry.
  [[nodiscard]] WaitState::Obstacle next_obstacle() const {
    if (failure_.why == AcquireDecision::guarded) return WaitState::Guarded{};
    const bool is_run = std::holds_alternative<WaitState::Split>(state_.obstacle) ||
                        std::holds_alternative<WaitState::Outage>(state_.obstacle);
    return is_run ? state_.obstacle : WaitState::Held{};
  }

  [[nodiscard]] WaitStep after_outage() const {
    const auto* before = std::get_if<WaitState::Outage>(&state_.obstacle);
    WaitState::Outage outage = before != nullptr ? *before : WaitState::Outage{context_.now, 0};
    const Queue queue = state_.queue == Queue::queued && outage.rounds + 1 >= max_outages_in_queue
                            ? Queue::away
                            : state_.queue;

    const Instant borne_until = later(outage.since, policy_.unavailable_wait);
    if (wait_has_ended() || context_.now >= borne_until)
      return {{queue, outage}, std::nullopt, failure_.why};
    const Instant again = context_.now + unavailable_delay(outage.rounds, random_());
    ++outage.rounds;
    return {{queue, outage}, std::min({context_.give_up_at, borne_until, again}), failure_.why};
  }

  [[nodiscard]] WaitStep leave_full_queue() const {
    return {state_, std::nullopt, AcquireDecision::queue_full};
  }

  /// Contenders that have to leave do so at once, so a waiter that is still queued after a while
  /// may stay.
  [[nodiscard]] WaitStep after_contention() const {
    const Instant since = state_.contended_since.value_or(context_.now);
    const Duration delay = jittered(contention_interval, random_());
    if (context_.now + delay - since > split_timeout) return leave_full_queue();
    return {{state_.queue, state_.obstacle, since}, context_.now + delay, AcquireDecision::busy};
  }

  [[nodiscard]] WaitStep after_guarded() const {
    const WaitState state{state_.queue, WaitState::Guarded{}};
    if (wait_has_ended()) return {state, std::nullopt, failure_.why};

    // Poll before the guard ends only if the end of another lease, or the return of a server, may
    // admit us sooner.
    Duration delay = jittered(guard_poll_interval, random_());
    if (failure_.holder) delay = std::min(delay, jittered(policy_.retry_delay, random_()));
    for (const RestartedVote& server : failure_.restarted)
      delay = std::min(delay, server.left + expiry_slack);
    return {state, std::min(context_.give_up_at, context_.now + delay), failure_.why};
  }

  [[nodiscard]] WaitStep after_split() const {
    const auto* before = std::get_if<WaitState::Split>(&state_.obstacle);
    WaitState::Split split = before != nullptr ? *before : WaitState::Split{context_.now, 0};
    const bool at_once = failure_.goes_first && split.rounds == 0;
    const Duration delay =
        at_once ? Duration::zero() : split_delay(split.rounds, failure_.answered_within, random_());
    const std::optional<Instant> again = split.retry_at(context_.now, delay);
    if (again) return {{state_.queue, split}, *again, failure_.why};
    // The series is kept: until there is another obstacle, further splits count as busy, too.
    return {{state_.queue, split}, after_busy(), AcquireDecision::busy};
  }

  [[nodiscard]] std::optional<Instant> after_busy() const {
    if (wait_has_ended()) return std::nullopt;
    const QueueView& queue = failure_.queue;
    const Duration retry = jittered(policy_.retry_delay, random_());
    const Duration poll = std::min<Duration>(retry, max_unnotified_poll_interval);
    const bool is_foreign = failure_.holder && failure_.holder->foreign;
    Duration delay = until_next_poll(queue);

    // A foreign holder notifies no waiter, so the first waiter polls. The second polls more rarely.
    if (is_foreign && queue.ahead == 0) delay = std::min(delay, retry);
    if (queue.cannot_publish && queue.ahead == 0) delay = std::min(delay, poll);
    if ((is_foreign || queue.cannot_publish) && queue.ahead == 1) {
      delay = std::min<Duration>(delay, second_poll_interval);
    }

    // A quorum may have room but not for us, for example if different slots are free on different
    // servers. That is not worth another attempt at once.
    if (failure_.granted_some) delay = std::max(delay, poll);

    // The slot that we requested is taken by now, and no server notifies us of another free one.
    const bool has_room = failure_.holder && failure_.holder->shared && !queue.slots.empty();
    if (has_room && queue.ahead == 0) delay = std::min(delay, poll);

    const bool will_be_notified =
        has_ticket(state_.queue) && context_.may_be_notified && queue.queued;
    if (!will_be_notified) delay = std::min(delay, poll);
    return std::min(context_.give_up_at, context_.now + delay);
  }

  const WaitState& state_;
  const AttemptFailure& failure_;
  const WaitPolicy& policy_;
  const WaitContext& context_;
  const RandomBits& random_;
};

}  // namespace

WaitPolicy WaitPolicy::after(Duration waited) const {
  WaitPolicy rest = *this;
  if (wait) rest.wait = std::max(Duration::zero(), *wait - waited);
  return rest;
}

WaitStep after_failure(const WaitState& state, const AttemptFailure& failure,
                       const WaitPolicy& policy, const WaitContext& context,
                       const RandomBits& random) {
  return Transition(state, failure, policy, context, random).step();
}

}  // namespace redlock
