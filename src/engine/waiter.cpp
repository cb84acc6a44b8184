#include "engine/waiter.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace redlock {
namespace {

using Queue = WaitState::Queue;

/// How far apart the servers may send notifications that mean the same: in round trips, and within
/// these bounds.
constexpr int gathering_round_trips = 2;
constexpr Milliseconds min_gathering{1};
constexpr Milliseconds max_gathering{50};

/// After so many notifications in a row that were no quorum's, and attempts in vain, a waiter takes
/// its time.
constexpr unsigned max_partial_notifications = 3;

/// Servers remember the newest of those that supersede others for a day after its last poll
/// (NEWEST_LIFE in queue.lua). Less an hour for clock rates and for a poll that is under way.
constexpr std::chrono::hours max_without_poll{23};

}  // namespace

Waiter::Waiter(ServerSet& server_set, AcquireOrder order, WaitPolicy policy, Interrupt& interrupt)
    : server_set_(server_set),
      order_(std::move(order)),
      policy_(policy),
      interrupt_(interrupt),
      give_up_at_(policy.wait ? later(server_set.clock().now(), *policy.wait) : Instant::max()) {}

asio::awaitable<std::variant<Lease, StillWaiting, GaveUp>> Waiter::next() {
  if (try_at_) co_await rest();
  const bool was_queued = is_queued() && member_->in_queue();
  if (is_queued()) member_->begin_attempt();
  Approach approach{is_queued() ? &*member_ : nullptr, slot_};
  if (member_) approach.on_silence = member_->resubscriber();
  auto made = order_.supersession ? attempt_with_ticket(approach)
                                  : attempt(server_set_, order_, interrupt_, approach);
  auto result = co_await std::move(made);
  if (result) {
    if (member_) member_->served();
    member_.reset();
    co_return std::move(*result);
  }

  AttemptFailure& failure = result.error();
  answered_within_ = failure.answered_within;
  // Ask for a certain slot only after votes were split between several (M2); otherwise for the
  // lowest free one.
  slot_ = failure.granted_some ? failure.queue.slot : std::nullopt;
  for (std::size_t i = 0; was_queued && i < failure.forgotten.size(); ++i) {
    if (failure.forgotten[i]) approach.on_silence(i);
  }

  const bool may_be_notified = member_ && member_->is_subscribed();
  const WaitContext context{server_set_.clock().now(), give_up_at_, may_be_notified,
                            server_set_.server_timeout()};
  const WaitStep step =
      after_failure(state_, failure, policy_, context, [this] { return server_set_.random(); });
  failure.why = step.why;
  try_at_ = step.try_at;
  enter(step.state, failure);
  if (member_) failure.unsubscribed = member_->unsubscribed();
  if (try_at_) co_return StillWaiting{std::move(failure)};
  member_.reset();
  co_return GaveUp{std::move(failure)};
}

void Waiter::enter(const WaitState& next, const AttemptFailure& failure) {
  if (next.queue == Queue::left && is_queued()) member_->leave();
  if (next.queue == Queue::joining && !member_) take_ticket(*failure.queue.next_ticket);
  state_ = next;
}

void Waiter::take_ticket(Ticket ticket) {
  const auto new_id = [this] { return QueueMember::new_id(server_set_, order_.owner.host); };
  if (!order_.supersession) {
    member_.emplace(server_set_, order_.resource, ticket, new_id());
    return;
  }
  Supersession& ours = *order_.supersession;
  if (ours.id.empty()) {
    ours.id = new_id();
    ours.ticket = ticket;
  }
  member_.emplace(server_set_, order_.resource, ours.ticket, ours.id);
}

asio::awaitable<Result<Lease, AttemptFailure>> Waiter::attempt_with_ticket(Approach& approach) {
  Supersession& ours = *order_.supersession;
  if (!member_ && !ours.id.empty()) take_ticket(ours.ticket);
  for (;;) {
    // Also between drawing the ticket and showing it.
    if (stood_still_too_long()) {
      AttemptFailure failure{};
      failure.why = AttemptFailure::Why::superseded;
      co_return unexpected<AttemptFailure>(std::move(failure));
    }
    // It shows its ticket also where it is not queued. Else it could be let in after a newer one.
    if (member_ && !is_queued()) approach.outside = &*member_;
    const Instant t0 = server_set_.clock().now();
    auto result = co_await attempt(server_set_, order_, interrupt_, approach);
    if (result) {
      ours.polled = t0;
      co_return result;
    }
    // A server that was shown a ticket, and answers without the largest, does not know which is the
    // newest: its slot moves (D1).
    const QueueView& queue = result.error().queue;
    if (queue.next_ticket && (!member_ || queue.has_largest)) ours.polled = t0;
    if (member_ || !queue.next_ticket) co_return result;
    take_ticket(*queue.next_ticket);
  }
}

bool Waiter::stood_still_too_long() const {
  if (!order_.supersession || !order_.supersession->polled) return false;
  return server_set_.clock().now() - *order_.supersession->polled > max_without_poll;
}

asio::awaitable<void> Waiter::rest() {
  // Waiters that the restart guard stops notify each other whenever one undoes its grants. Such a
  // notification brings nothing new.
  if (is_queued() && !std::holds_alternative<WaitState::Guarded>(state_.obstacle)) {
    Duration gathering = std::clamp<Duration>(gathering_round_trips * answered_within_,
                                              min_gathering, max_gathering);
    // Two waiters that each have grants of only a few servers notify each other at these whenever
    // one of them undoes its attempt.
    if (partial_notifications_ >= max_partial_notifications) gathering = max_gathering;
    const bool by_some = co_await member_->wait(*try_at_, gathering, interrupt_);
    partial_notifications_ = by_some ? partial_notifications_ + 1 : 0;
    co_return;
  }
  co_await pause();
  if (state_.queue != Queue::joining || interrupt_.raised()) co_return;
  state_.queue = Queue::queued;
  co_await member_->subscribe(interrupt_);
}

asio::awaitable<void> Waiter::pause() {
  const std::unique_ptr<Event> event = server_set_.clock().make_event();
  const Interrupt::Listener listener(interrupt_, *event);
  while (!interrupt_.raised()) {
    if (!co_await event->wait_until(*try_at_)) co_return;
  }
}

}  // namespace redlock
