#pragma once

#include <cstdint>

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

/// How long to wait after round `k` (from 0) in which no quorum answered. Doubles with `k` from
/// 20 ms to 500 ms, with jitter.
Duration unavailable_delay(unsigned k, std::uint64_t random);

}  // namespace redlock
