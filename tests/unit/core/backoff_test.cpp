#include "core/backoff.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>

namespace redlock {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t largest_draw = std::numeric_limits<std::uint64_t>::max();

struct Extent {
  Duration shortest = Duration::max();
  Duration longest = Duration::min();
};

/// The extent of many draws; the generator is seeded, so the result is always the same.
template <class Draw>
Extent extent_of(Draw draw) {
  std::mt19937_64 random;  // NOLINT: reproducible on purpose
  Extent extent;
  for (int i = 0; i < 5000; ++i) {
    const Duration drawn = draw(random());
    extent.shortest = std::min(extent.shortest, drawn);
    extent.longest = std::max(extent.longest, drawn);
  }
  return extent;
}

void expect_spread(const Extent& extent, Duration from, Duration to) {
  const Duration slack = (to - from) / 100;
  EXPECT_GE(extent.shortest, from);
  EXPECT_LE(extent.shortest, from + slack);
  EXPECT_LE(extent.longest, to);
  EXPECT_GE(extent.longest, to - slack);
}

TEST(Jittered, SpreadsFromHalfToOneAndAHalf) {
  expect_spread(extent_of([](std::uint64_t random) { return jittered(100ms, random); }), 50ms,
                150ms);
}

TEST(Jittered, ReachesBothEnds) {
  EXPECT_EQ(jittered(100ns, 0), 50ns);
  EXPECT_EQ(jittered(100ns, 100), 150ns);
  EXPECT_EQ(jittered(100ns, 101), 50ns);
}

TEST(Jittered, GivesTheSameForTheSameBits) {
  EXPECT_EQ(jittered(1s, 12345), jittered(1s, 12345));
}

TEST(Jittered, TakesAnySpan) {
  EXPECT_EQ(jittered(0ns, largest_draw), 0ns);
  EXPECT_EQ(jittered(-5s, largest_draw), 0ns);
  for (const std::uint64_t random : {std::uint64_t{0}, largest_draw / 2, largest_draw}) {
    EXPECT_GT(jittered(Duration::max(), random), 24h * 365 * 10);
    EXPECT_LT(jittered(Duration::max(), random), 24h * 365 * 100);
  }
}

TEST(SplitDelay, SpreadsFromOneToTwoRoundTrips) {
  expect_spread(extent_of([](std::uint64_t random) { return split_delay(0, 10ms, random); }), 10ms,
                20ms);
}

TEST(SplitDelay, GrowsByHalfARound) {
  EXPECT_EQ(split_delay(1, 16ms, 0), 24ms);
  EXPECT_EQ(split_delay(2, 16ms, 0), 36ms);
  EXPECT_EQ(split_delay(3, 16ms, 0), 54ms);
  expect_spread(extent_of([](std::uint64_t random) { return split_delay(3, 16ms, random); }), 54ms,
                108ms);
}

TEST(SplitDelay, StopsGrowingAfterEightRounds) {
  EXPECT_EQ(split_delay(8, 256ms, 0), 6561ms);
  EXPECT_EQ(split_delay(9, 256ms, 0), 6561ms);
  EXPECT_EQ(split_delay(std::numeric_limits<unsigned>::max(), 256ms, 0), 6561ms);
}

TEST(SplitDelay, TakesARoundTripForAMillisecondAtLeast) {
  for (const Duration trip : {Duration(-1s), Duration(0s), Duration(20us), Duration(1ms)})
    EXPECT_EQ(split_delay(0, trip, 0), 1ms);
  EXPECT_EQ(split_delay(0, 1001us, 0), 1001us);
}

TEST(SplitDelay, NeverOverflows) {
  EXPECT_GT(split_delay(8, Duration::max(), largest_draw), 24h * 365);
}

TEST(UnavailableDelay, DoublesFromTwentyToFiveHundredMilliseconds) {
  const Duration expected[] = {20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms};
  for (unsigned k = 0; k < std::size(expected); ++k)
    EXPECT_EQ(unavailable_delay(k, 0), expected[k] / 2) << k;
  EXPECT_EQ(unavailable_delay(std::numeric_limits<unsigned>::max(), 0), 250ms);
}

TEST(UnavailableDelay, IsJittered) {
  expect_spread(extent_of([](std::uint64_t random) { return unavailable_delay(1, random); }), 20ms,
                60ms);
}

TEST(NotificationPace, ActsAtOnceUntilTheyAreAFlood) {
  const Instant began = Instant() + 1h;
  NotificationPace pace;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(pace.next(began), began) << i;
  EXPECT_EQ(pace.next(began), began + 50ms);
  EXPECT_EQ(pace.next(began), began + 100ms);
  EXPECT_EQ(pace.next(began + 1s), began + 1s) << "after a while the next ones are at once, too";
}

TEST(NotificationPace, AFloodIsActedOnTwentyTimesASecond) {
  NotificationPace pace;
  Instant now = Instant() + 1h;
  int acted = 0;
  for (const Instant end = now + 10s; now < end; ++acted) now = pace.next(now);
  EXPECT_LE(acted, 20 + 10 * 20 + 1);
}

}  // namespace
}  // namespace redlock
