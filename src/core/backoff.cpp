#include "core/backoff.hpp"

#include <algorithm>

namespace redlock {
namespace {

using std::chrono::milliseconds;

/// Scheduling noise is about this large: attempts that are closer together still collide.
constexpr Duration min_round_trip = milliseconds(1);

/// 1.5^8 is 25 round trips: enough room for a hundred simultaneous clients, and still less than a
/// second on a LAN.
constexpr unsigned max_split_steps = 8;

/// A restarting server is back soon, so the first delay is near a round trip. While the server
/// stays away, two questions a second are no load.
constexpr Duration min_unavailable = milliseconds(20);
constexpr Duration max_unavailable = milliseconds(500);

/// A waiter's script takes well below a millisecond, so that a flood of notifications costs a
/// waiter and its server little.
constexpr Duration notification_interval = milliseconds(50);
constexpr int notifications_at_once = 20;

/// Longer spans are cut to this (36 years), so that no sum overflows.
constexpr Duration longest = Duration::max() / 8;
static_assert(longest > std::chrono::hours(24 * 365 * 30));

/// Uniform in [shortest, shortest + width]; the bias of the modulo is below 1 in 500 for a year, 1
/// in 10^8 for a minute.
Duration spread(Duration shortest, Duration width, std::uint64_t random) {
  const auto choices = static_cast<std::uint64_t>(width.count()) + 1;
  return shortest + Duration(static_cast<Duration::rep>(random % choices));
}

}  // namespace

Duration jittered(Duration base, std::uint64_t random) {
  const Duration middle = std::clamp(base, Duration::zero(), longest);
  return spread(middle / 2, middle, random);
}

Duration split_delay(unsigned k, Duration round_trip, std::uint64_t random) {
  // Growth multiplies it by up to 25 and jitter by up to 2. Clamped first, the product stays below
  // 2 * longest.
  Duration shortest = std::clamp(round_trip, min_round_trip, longest / 32);
  for (unsigned step = 0; step < std::min(k, max_split_steps); ++step) shortest += shortest / 2;
  return spread(shortest, shortest, random);
}

std::optional<Instant> SplitSeries::retry_at(Instant now, Duration delay) {
  ++rounds;
  const Instant again = now + delay;
  return again - since > split_timeout ? std::nullopt : std::optional(again);
}

Duration unavailable_delay(unsigned k, std::uint64_t random) {
  Duration delay = min_unavailable;
  for (unsigned step = 0; step < k && delay < max_unavailable; ++step) delay *= 2;
  return jittered(std::min(delay, max_unavailable), random);
}

Instant NotificationPace::next(Instant now) {
  spent_until_ = std::max(spent_until_, now) + notification_interval;
  return std::max(now, spent_until_ - notifications_at_once * notification_interval);
}

}  // namespace redlock
