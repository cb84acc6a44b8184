#include "engine/waiter.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "core/protocol.hpp"
#include "engine/inherited_lease.hpp"

namespace redlock {
namespace {

using Queue = WaitState::Queue;

/// How long to wait for further notifications after the first, as the servers do not send them at
/// the same time: in round trips, and within these bounds.
constexpr int gathering_round_trips = 2;
constexpr Milliseconds min_gathering{1};
constexpr Milliseconds max_gathering{50};

/// After so many successive notifications from less than a quorum, each followed by a failed
/// attempt, a waiter waits for further notifications as long as it may.
constexpr unsigned max_partial_notifications = 3;

/// Servers forget the newest superseding waiter some time after its last poll. This is an hour
/// less, for different clock rates and for a poll that is under way.
constexpr Milliseconds max_without_poll = protocol::newest_life - std::chrono::hours(1);

}  // namespace

WaitFailure stopped_by(const StopRequested& request) {
  WaitFailure failure{request.resource, {}, true, request.request};
  failure.failure.why = AcquireDecision::stopped;
  return failure;
}

Waiter::Waiter(ServerSet& server_set, AcquireOrder order, WaitPolicy policy, Interrupt& interrupt)
    : server_set_(server_set),
      order_(std::move(order)),
      policy_(policy),
      interrupt_(interrupt),
      give_up_at_(policy.wait ? later(server_set.clock().now(), *policy.wait) : Instant::max()) {}

asio::awaitable<Result<Lease, WaitFailure>> Waiter::next() {
  if (try_at_) co_await rest();
  const bool was_queued = is_queued() && member_->in_queue();
  if (is_queued()) member_->begin_attempt();
  AttemptOptions options{is_queued() ? &*member_ : nullptr, slots_};
  // Show the ticket even if the waiter is not queued. Otherwise it might be granted the lock after
  // a newer waiter came, or after it was dismissed.
  if (member_ && !is_queued()) options.unqueued_entry = &*member_;
  if (member_) options.on_silence = member_->resubscriber();
  auto made = order_.supersession ? attempt_with_ticket(options)
                                  : attempt(server_set_, order_, interrupt_, options);
  auto result = co_await std::move(made);
  if (result) {
    if (member_) member_->served();
    member_.reset();
    co_return std::move(*result);
  }

  AttemptFailure& failure = result.error();
  answered_within_ = failure.answered_within;
  // Request certain slots only after a split between several slots (M2); otherwise the lowest free
  // ones.
  slots_ = failure.granted_some ? failure.queue.slots : Slots();
  for (std::size_t i = 0; was_queued && i < failure.forgotten.size(); ++i) {
    if (failure.forgotten[i]) options.on_silence(i);
  }

  // The waiter keeps its place in the bounded queue, even if it leaves for a while and returns
  // (Q10).
  if (failure.queue.room == Room::enough) order_.max_waiting.reset();

  const bool may_be_notified = member_ && member_->is_subscribed();
  const WaitContext context{server_set_.clock().now(), give_up_at_, may_be_notified,
                            server_set_.server_timeout()};
  const WaitStep step =
      after_failure(state_, failure, policy_, context, [this] { return server_set_.random(); });
  failure.why = step.why;
  try_at_ = step.try_at;
  enter(step.state, failure);
  if (member_) failure.unsubscribed = member_->unsubscribed();
  if (!try_at_) member_.reset();
  WaitFailure failed{order_.resource, std::move(failure), !try_at_};
  co_return unexpected<WaitFailure>(std::move(failed));
}

void Waiter::enter(const WaitState& next, const AttemptFailure& failure) {
  if (next.queue == Queue::away && is_queued()) member_->leave();
  if (next.queue == Queue::joining && !member_) take_ticket(*failure.queue.next_ticket);
  state_ = next;
}

void Waiter::take_ticket(Ticket ticket) {
  const auto new_id = [this] { return QueueMember::new_id(server_set_, order_.owner.host); };
  if (!order_.supersession) {
    member_.emplace(server_set_, order_.resource, ticket, new_id());
    return;
  }
  std::optional<Place>& ours = order_.supersession->place;
  if (!ours) ours = Place{ticket, new_id()};
  member_.emplace(server_set_, order_.resource, ours->ticket, ours->waiter);
}

asio::awaitable<Result<Lease, AttemptFailure>> Waiter::attempt_with_ticket(
    AttemptOptions& options) {
  Supersession& ours = *order_.supersession;
  if (!member_ && ours.place) take_ticket(ours.place->ticket);
  for (;;) {
    // Checked before each attempt, also between drawing the ticket and showing it.
    if (polled_too_long_ago()) {
      AttemptFailure failure{};
      failure.why = AcquireDecision::superseded;
      co_return unexpected<AttemptFailure>(std::move(failure));
    }
    if (member_ && !is_queued()) options.unqueued_entry = &*member_;
    const Instant t0 = server_set_.clock().now();
    auto result = co_await attempt(server_set_, order_, interrupt_, options);
    if (result) {
      ours.polled = t0;
      co_return result;
    }
    // A server that got our ticket but does not report the largest one cannot know which waiter is
    // the newest: its slot is moving (D1).
    const QueueView& queue = result.error().queue;
    if (queue.next_ticket && (!member_ || queue.has_largest)) ours.polled = t0;
    if (member_ || !queue.next_ticket) co_return result;
    // Return the holder before the next attempt may ask it to stop: it may be a run around us.
    if (ours.replaces && result.error().holder) co_return result;
    take_ticket(*queue.next_ticket);
  }
}

bool Waiter::polled_too_long_ago() const {
  if (!order_.supersession || !order_.supersession->polled) return false;
  return server_set_.clock().now() - *order_.supersession->polled > max_without_poll;
}

asio::awaitable<void> Waiter::rest() {
  // Waiters that the restart guard blocks notify each other whenever one of them undoes its grants.
  // Such notifications are not worth an attempt.
  if (is_queued() && !std::holds_alternative<WaitState::Guarded>(state_.obstacle)) {
    Duration gathering = std::clamp<Duration>(gathering_round_trips * answered_within_,
                                              min_gathering, max_gathering);
    // Two waiters that each get grants from less than a quorum notify each other, through these
    // servers, whenever one of them undoes its attempt.
    if (partial_notifications_ >= max_partial_notifications) gathering = max_gathering;
    const bool by_some = co_await member_->wait(*try_at_, gathering, interrupt_);
    partial_notifications_ = by_some ? partial_notifications_ + 1 : 0;
    const Instant now = server_set_.clock().now();
    if (interrupt_.raised() || now >= *try_at_) co_return;
    try_at_ = std::min(*try_at_, pace_.next(now));
    co_await pause();
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

SetWaiter::SetWaiter(ServerSet& server_set, std::vector<AcquireOrder> orders, WaitPolicy policy,
                     Interrupt& interrupt)
    : server_set_(server_set),
      orders_(std::move(orders)),
      policy_(policy),
      interrupt_(interrupt),
      began_(server_set.clock().now()),
      set_(std::make_shared<HeldSet>(server_set, interrupt)) {
  // A lease that is inherited does not show us as its holder, so `status` could not tell that we
  // have it.
  std::string next;
  std::string last;
  for (auto order = orders_.rbegin(); order != orders_.rend(); ++order) {
    order->owner.next_key = next;
    order->owner.last_key = last;
    if (order->parent_claim) continue;
    next = order->resource.key();
    if (last.empty()) last = next;
  }
}

asio::awaitable<Result<std::shared_ptr<HeldSet>, WaitFailure>> SetWaiter::next() {
  for (;;) {
    if (const auto requested = set_->stop_requested()) {
      WaitFailure stopped = stopped_by(*requested);
      co_await give_up();
      co_return unexpected<WaitFailure>(std::move(stopped));
    }
    // A guarded parent lease is checked before every attempt, and so is one on which no quorum has
    // answered yet. Otherwise we would wait for ourselves.
    const auto& parent_claim = current().parent_claim;
    if (parent_claim && (!waiter_ || parent_claim->guard_lives || parent_unanswered_)) {
      Inheritance inheritance = co_await inherit(server_set_, current());
      parent_unanswered_ = inheritance.unanswered;
      parent_faults_ = std::move(inheritance.faults);
      if (inheritance.lost) orders_[set_->leases().size()].parent_claim.reset();
      if (inheritance.too_weak) {
        WaitFailure failed{current().resource, {}, true};
        failed.failure.why = AcquireDecision::parent_too_weak;
        co_await give_up();
        co_return unexpected<WaitFailure>(std::move(failed));
      }
      if (inheritance.lease) {
        waiter_.reset();
        if (co_await complete_with(*inheritance.lease)) co_return set_;
        continue;
      }
    }
    if (!waiter_)
      waiter_.emplace(server_set_, current(), policy_.after(server_set_.clock().now() - began_),
                      interrupt_);
    auto result = co_await waiter_->next();
    if (result) {
      waiter_.reset();
      if (co_await complete_with(*result)) co_return set_;
      continue;
    }
    if (set_->stop_requested()) continue;
    WaitFailure& failed = result.error();
    if (own_lease_unavailable(failed.failure)) {
      failed.failure.why = AcquireDecision::unavailable;
      failed.failure.faults = parent_faults_;
    }
    if (failed.final) co_await give_up();
    co_return unexpected<WaitFailure>(std::move(failed));
  }
}

asio::awaitable<void> SetWaiter::give_up() {
  waiter_.reset();
  if (set_->leases().empty()) co_return;
  (void)co_await set_->release();
  set_ = std::make_shared<HeldSet>(server_set_, interrupt_);
}

/// Whether the holder is our own parent lease, which could not be inherited because no quorum
/// confirmed it. Then the servers are unavailable, and the lock is not busy.
bool SetWaiter::own_lease_unavailable(const AttemptFailure& failure) const {
  const auto& claim = current().parent_claim;
  return claim && parent_unanswered_ && failure.holder && failure.holder->id == claim->id;
}

/// Adds the lease of the current order. True if the set is now complete and valid.
asio::awaitable<bool> SetWaiter::complete_with(Lease lease) {
  set_->add(lease);
  if (set_->stop_requested()) co_return false;
  if (set_->leases().size() < orders_.size()) {
    set_->keep();
    co_return false;
  }
  if (is_good()) co_return true;
  co_await give_up();
  co_return false;
}

/// Whether all leases are still valid: one that was acquired long before the others may have ended.
bool SetWaiter::is_good() const {
  return !set_->lost() &&
         server_set_.clock().now() + orders_.front().needed_validity < set_->deadline();
}

}  // namespace redlock
