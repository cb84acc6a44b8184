#include "engine/waiter.hpp"

#include <algorithm>

#include "core/backoff.hpp"

namespace redlock {
namespace {

using Why = AttemptFailure::Why;

/// How long simultaneous attempts may take to sort themselves out before the lock counts as busy (R8).
constexpr Milliseconds split_patience{1000};

/// An attempt of another lasts at most a second (the longest default server timeout), or our own server timeout where that was set to be
/// longer, as it then is for all. So an older lease is not one that will be given up by itself.
constexpr Milliseconds longest_attempt{1000};

/// While the restart guard alone is in the way: how often to see whether another server has come back that may vote.
constexpr Milliseconds guard_look{1000};

/// How long the servers' calls may be apart that mean the same, in round trips and within these.
constexpr int gathering_round_trips = 2;
constexpr Milliseconds shortest_gathering{1};
constexpr Milliseconds longest_gathering{50};

/// After so many calls in a row that were no quorum's, and looks in vain, a waiter takes its time.
constexpr unsigned most_calls_of_some = 3;

/// After so many rounds in a row without a quorum of answers a waiter leaves the line: it would hold up those who have one (Q6).
constexpr unsigned most_outages_in_line = 2;

/// A shared lock may be old and yet have a free seat, or room for one more reader, that several attempts are after.
bool is_established(const AttemptFailure& failure, Duration server_timeout) {
  if (!failure.holder || !failure.holder->age) return false;
  return *failure.holder->age > std::max<Duration>(longest_attempt, server_timeout) && !(failure.holder->shared && failure.granted_some);
}

/// The instant that long from `from`, or the end of time: a wait may be as long as the user likes.
Instant later(Instant from, Duration span) {
  return span < Instant::max() - from ? from + span : Instant::max();
}

bool is_outage(Why why) {
  return why == Why::unavailable || why == Why::too_slow;
}

bool is_final(Why why) {
  return why == Why::denied || why == Why::misconfigured || why == Why::duplicate || why == Why::interrupted;
}

}  // namespace

Waiter::Waiter(Electorate& electorate, AcquireOrder order, WaitPolicy policy, Interrupt& interrupt)
    : electorate_(electorate),
      order_(std::move(order)),
      policy_(policy),
      interrupt_(interrupt),
      give_up_at_(policy.wait ? later(electorate.clock().now(), *policy.wait) : Instant::max()) {}

asio::awaitable<std::variant<Lease, StillWaiting, GaveUp>> Waiter::next() {
  if (try_at_) co_await rest();
  if (place_ && in_place_) {
    ++looks_;
    place_->begin_look();
  }
  const Approach approach{place_ && in_place_ ? &*place_ : nullptr, seat_};
  auto result = co_await attempt(electorate_, order_, interrupt_, approach);
  if (result) {
    if (place_) place_->served();
    place_.reset();
    co_return std::move(*result);
  }
  AttemptFailure& failure = result.error();
  round_trip_ = failure.answered_within;
  // A certain seat is wished for only when votes were split between several (M2); else the lowest that is free then.
  seat_ = failure.granted_some ? failure.line.seat : std::nullopt;
  for (std::size_t i = 0; i < failure.silent.size(); ++i) {
    if (place_ && (failure.silent[i] || (looks_ > 1 && failure.forgotten[i]))) place_->doubt(i);
  }
  held_back_ = failure.why == Why::guarded;
  try_at_ = next_try(failure);
  if (place_) failure.deaf_to = place_->deaf_to();
  if (try_at_) co_return StillWaiting{std::move(failure)};
  place_.reset();
  co_return GaveUp{std::move(failure)};
}

/// Until it is time for the next attempt.
asio::awaitable<void> Waiter::rest() {
  // Those whom the guard holds back call each other whenever one of them gives back what it may not have: nothing that is news.
  if (place_ && in_place_ && !held_back_) {
    Duration gathering = std::clamp<Duration>(gathering_round_trips * round_trip_, shortest_gathering, longest_gathering);
    // Two who are let in by a few servers only call each other there whenever one of them gives back what it got.
    if (calls_of_some_ >= most_calls_of_some) gathering = longest_gathering;
    const bool by_some = co_await place_->wait(*try_at_, gathering, interrupt_);
    calls_of_some_ = by_some ? calls_of_some_ + 1 : 0;
    co_return;
  }
  const std::unique_ptr<Bell> bell = electorate_.clock().make_bell();
  const Interrupt::Listener listener(interrupt_, *bell);
  while (!interrupt_.raised()) {
    if (!co_await bell->wait_until(*try_at_)) break;
  }
  const bool joins = place_ && outages_ == 0 && !interrupt_.raised();
  if (!joins) co_return;
  in_place_ = true;
  if (std::exchange(listens_, true)) co_return;
  co_await place_->listen(interrupt_);
}

std::optional<Instant> Waiter::next_try(AttemptFailure& failure) {
  if (is_final(failure.why)) return std::nullopt;
  const Instant now = electorate_.clock().now();
  if (is_outage(failure.why)) {
    split_since_.reset();
    return after_outage(now);
  }
  outage_since_.reset();
  outages_ = 0;
  // Back to our place, now that a quorum answers.
  if (place_ && !in_place_ && now < give_up_at_) return now;
  if (failure.why == Why::guarded) return after_guard(failure, now);
  if (failure.why == Why::maybe_busy && is_established(failure, electorate_.server_timeout())) failure.why = Why::busy;
  // Whoever has it calls us, also one whose attempt fails.
  if (failure.why == Why::maybe_busy && place_ && failure.line.in_line && !failure.granted_some) failure.why = Why::busy;
  if (!place_ && now < give_up_at_ && failure.line.next_ticket) {
    place_.emplace(electorate_, order_.resource, *failure.line.next_ticket, order_.owner.host);
    return now;
  }
  if (failure.why != Why::busy) {
    if (const auto again = after_split(failure, now)) return again;
    failure.why = Why::busy;
  } else {
    split_since_.reset();
    splits_ = 0;
  }
  return after_busy(failure, now);
}

std::optional<Instant> Waiter::after_split(const AttemptFailure& failure, Instant now) {
  if (!split_since_) {
    split_since_ = now;
    splits_ = 0;
  }
  const Duration delay =
      failure.goes_first && splits_ == 0 ? Duration::zero() : split_delay(splits_, failure.answered_within, electorate_.random());
  ++splits_;
  const Instant again = now + delay;
  if (again - *split_since_ > split_patience) return std::nullopt;
  return again;
}

std::optional<Instant> Waiter::after_outage(Instant now) {
  if (!outage_since_) outage_since_ = now;
  if (outages_ + 1 >= most_outages_in_line && std::exchange(in_place_, false)) place_->leave();
  if (now >= give_up_at_ || now - *outage_since_ >= policy_.unavailable_wait) return std::nullopt;
  const Instant end = std::min(give_up_at_, later(*outage_since_, policy_.unavailable_wait));
  return std::min(end, now + unavailable_delay(outages_++, electorate_.random()));
}

std::optional<Instant> Waiter::after_guard(const AttemptFailure& failure, Instant now) const {
  if (now >= give_up_at_) return std::nullopt;
  // Sooner than the guard's end only if somebody else's lease, or a server that is away, may make room before.
  Duration delay = jittered(guard_look, electorate_.random());
  if (failure.holder) delay = std::min(delay, jittered(policy_.retry_delay, electorate_.random()));
  for (const HeldBack& young : failure.held_back) delay = std::min(delay, young.left + expiry_slack);
  return std::min(give_up_at_, now + delay);
}

std::optional<Instant> Waiter::after_busy(const AttemptFailure& failure, Instant now) {
  if (now >= give_up_at_) return std::nullopt;
  const Duration poll = jittered(policy_.retry_delay, electorate_.random());
  Duration delay = until_next_look(failure.line);
  const bool is_foreign = failure.holder && failure.holder->foreign;
  if (is_foreign && failure.line.ahead == 0) delay = std::min(delay, poll);
  if (failure.line.mute && failure.line.ahead == 0) delay = std::min<Duration>({delay, poll, longest_between_polls});
  if ((is_foreign || failure.line.mute) && failure.line.ahead == 1) delay = std::min<Duration>(delay, second_behind_foreign);
  // A quorum may be free and yet not ours, as with different seats: what is only nearly there is not worth a look at once.
  if (failure.granted_some) delay = std::max(delay, std::min<Duration>(poll, longest_between_polls));
  // The seat that was wished for is taken by now, and nobody calls us for another one that is free.
  const bool has_room = failure.holder && failure.holder->shared && failure.line.seat;
  if (has_room && failure.line.ahead == 0) delay = std::min<Duration>({delay, poll, longest_between_polls});
  const bool is_called = place_ && place_->hears() && failure.line.in_line;
  if (!is_called) delay = std::min<Duration>({delay, poll, longest_between_polls});
  return std::min(give_up_at_, now + delay);
}

}  // namespace redlock
