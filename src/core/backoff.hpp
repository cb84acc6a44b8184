#pragma once

#include <cstdint>
#include <optional>

#include "support/boot_clock.hpp"

namespace redlock {

/// When to retry. Pure functions: the caller provides the random bits, so that a simulation is
/// repeatable.

/// `base` with jitter: uniformly between base/2 and base*3/2, so that clients that began together
/// drift apart.
Duration jittered(Duration base, std::uint64_t random);

/// How long to pause after round `k` (from 0) of a split vote (R8): uniformly 1 to 2 round trips,
/// times 1.5^min(k, 8).
/// A round trip below one millisecond counts as one: scheduling noise is larger than the delay of
/// such a network.
Duration split_delay(unsigned k, Duration round_trip, std::uint64_t random);

/// How long simultaneous attempts may take to resolve before the lock counts as held (R8).
inline constexpr Milliseconds split_timeout{1000};

/// An unbroken series of rounds in which simultaneous attempts split the votes (R8).
struct SplitSeries {
  Instant since;        ///< the first such round
  unsigned rounds = 0;  ///< how many there were

  /// Counts a round that ended now. Returns when to retry: after `delay`; nullopt: the lock counts
  /// as held.
  std::optional<Instant> retry_at(Instant now, Duration delay);
  friend bool operator==(const SplitSeries&, const SplitSeries&) = default;
};

/// How long to wait after round `k` (from 0) in which no quorum answered. Doubles with `k` from
/// 20 ms to 500 ms, with jitter.
Duration unavailable_delay(unsigned k, std::uint64_t random);

/// Limits how often a waiter acts on notifications, so that a flood of them, which any client of
/// the server can send, costs little: at once for 20, then every 50 ms. A waiter in a busy queue
/// gets far fewer.
class NotificationPace {
 public:
  /// Counts a notification that is acted on. Returns when: at `now`, or later in a flood.
  Instant next(Instant now);

 private:
  Instant spent_until_;  ///< each one spends an interval
};

}  // namespace redlock
