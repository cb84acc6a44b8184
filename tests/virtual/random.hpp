#pragma once

#include <cstdint>

#include "support/boot_clock.hpp"

namespace redlock::sim {

/// Seeded random numbers, the same on every platform and cheap to start: SplitMix64.
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// In [0, limit); the bias does not matter for limits as small as ours.
  std::size_t below(std::size_t limit) { return bits() % limit; }

  /// True in so many cases of a thousand.
  bool chance(unsigned per_mille) { return below(1000) < per_mille; }

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }

  Duration between(Duration low, Duration high) {
    return Duration(between(low.count(), high.count()));
  }

 private:
  std::uint64_t state_;
};

}  // namespace redlock::sim
