#include "engine/waiter.hpp"

#include <algorithm>

#include "core/backoff.hpp"

namespace redlock {
namespace {

using Why = AttemptFailure::Why;

/// How long simultaneous attempts may take to sort themselves out before the lock counts as busy (R8).
constexpr Milliseconds split_patience{1000};

/// An attempt lasts at most a second (the longest default server timeout), so an older lease is not one that will be given up by itself.
constexpr Milliseconds longest_attempt{1000};

/// While the restart guard alone is in the way: how often to see whether another server has come back that may vote.
constexpr Milliseconds guard_look{1000};

/// A key's expiry shows to others up to this much later than its ttl says.
constexpr Milliseconds expiry_slack{2};

bool is_established(const AttemptFailure& failure) {
  return failure.holder && failure.holder->age && *failure.holder->age > longest_attempt;
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
  if (try_at_) {
    const std::unique_ptr<Bell> bell = electorate_.clock().make_bell();
    const Interrupt::Listener listener(interrupt_, *bell);
    while (!interrupt_.raised()) {
      if (!co_await bell->wait_until(*try_at_)) break;
    }
  }
  auto result = co_await attempt(electorate_, order_, interrupt_);
  if (result) co_return std::move(*result);
  try_at_ = next_try(result.error());
  if (try_at_) co_return StillWaiting{std::move(result.error())};
  co_return GaveUp{std::move(result.error())};
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
  if (failure.why == Why::guarded) return after_guard(failure, now);
  if (failure.why == Why::maybe_busy && is_established(failure)) failure.why = Why::busy;
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
      failure.goes_first && splits_ == 0 ? Duration::zero() : split_delay(splits_, failure.round_trip, electorate_.random());
  ++splits_;
  const Instant again = now + delay;
  if (again - *split_since_ > split_patience) return std::nullopt;
  return again;
}

std::optional<Instant> Waiter::after_outage(Instant now) {
  if (!outage_since_) outage_since_ = now;
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

std::optional<Instant> Waiter::after_busy(const AttemptFailure& failure, Instant now) const {
  if (now >= give_up_at_) return std::nullopt;
  Duration delay = jittered(policy_.retry_delay, electorate_.random());
  if (failure.holder && failure.holder->remaining) delay = std::min(delay, *failure.holder->remaining + expiry_slack);
  return std::min(give_up_at_, now + delay);
}

}  // namespace redlock
