#include "core/validity.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "../samples.hpp"

namespace redlock {
namespace {

using namespace std::chrono_literals;
using testing::ttl;

struct Times {
  Duration length, drift, margin, grace, timeout;
};

TEST(Validity, FollowsFromTheTtl) {
  const std::vector<Times> rows{
      {1ms, 2010us, 50ms, 200us, 50ms}, {100ms, 3ms, 50ms, 20ms, 50ms},
      {1s, 12ms, 50ms, 200ms, 50ms},    {1001ms, 12010us, 50050us, 200200us, 50050us},
      {5s, 52ms, 250ms, 1s, 250ms},     {6s, 62ms, 250ms, 1200ms, 300ms},
      {20s, 202ms, 250ms, 4s, 1s},      {25s, 252ms, 250ms, 5s, 1s},
      {30s, 302ms, 250ms, 5s, 1s},      {1h, 36002ms, 250ms, 5s, 1s},
  };
  for (const Times& row : rows) {
    const Ttl of = ttl(row.length);
    EXPECT_EQ(drift(of), row.drift) << of.length().count();
    EXPECT_EQ(margin(of), row.margin) << of.length().count();
    EXPECT_EQ(default_grace(of), row.grace) << of.length().count();
    EXPECT_EQ(default_server_timeout(of), row.timeout) << of.length().count();
  }
}

TEST(Validity, EndsBeforeTheServersDo) {
  const Instant t0{50s};
  EXPECT_EQ(deadline(t0, ttl(30s)), t0 + 29698ms);
  EXPECT_LT(deadline(t0, ttl(1ms)), t0) << "a ttl that the drift eats up is over before it begins";
}

TEST(Validity, AServerKeepsALeaseForTheTtlAndTheDrift) {
  EXPECT_EQ(max_retention(ttl(100ms)), 103ms);
  EXPECT_EQ(max_retention(ttl(1s)), 1012ms);
}

TEST(Validity, ExtendsEveryThirdOfTheTtl) {
  EXPECT_EQ(extend_interval(ttl(30s)), 10s);
}

TEST(LeavesRoom, CountsEveryDemand) {
  // 9 s: 3 s to the first extend, 250 ms margin, 92 ms drift leave 5658 ms for three timeouts and
  // the grace.
  EXPECT_TRUE(leaves_room(ttl(9s), {1s, 2658ms}));
  EXPECT_FALSE(leaves_room(ttl(9s), {1s, 2658ms + 1ns}));
  EXPECT_FALSE(leaves_room(ttl(9s), {1s + 1ns, 2658ms}));
  EXPECT_TRUE(leaves_room(ttl(9s), {1886ms, 0s}));
  EXPECT_FALSE(leaves_room(ttl(9s), {1886ms + 1ns, 0s}));
}

TEST(LeavesRoom, BelowHalfASecondOnlyWhereNothingIsSupervised) {
  EXPECT_FALSE(leaves_room(ttl(499ms), {1ms, 0s}));
  EXPECT_TRUE(leaves_room(ttl(500ms), {1ms, 0s}));
  EXPECT_TRUE(leaves_room(ttl(499ms), {1ms, 0s, /*supervised=*/false}));
}

TEST(MaxMargin, IsWhatTheOthersLeave) {
  // 30 s: 10 s to the first extend, three timeouts of 1 s, 5 s grace, 302 ms drift.
  EXPECT_EQ(max_margin(ttl(30s), {}), 11698ms);
  EXPECT_EQ(max_margin(ttl(30s), {2s, 1s}), 12698ms);
  EXPECT_EQ(max_margin(ttl(30s), {std::nullopt, 1h}), 0s);
}

TEST(NeededMargin, GrowsWithAllThatIsMeasured) {
  constexpr Duration plain = 250ms;
  EXPECT_EQ(needed_margin(plain, {}), plain);
  EXPECT_EQ(needed_margin(plain, {.lateness = 300ms}), plain + 600ms);
  EXPECT_EQ(needed_margin(plain, {.walk = 100ms}), plain + 200ms);
  EXPECT_EQ(needed_margin(plain, {.processes = 6000}), plain + 1200ms);
  EXPECT_EQ(needed_margin(plain, {.private_bytes = 7ULL << 30}), plain + 1400ms);
  EXPECT_EQ(needed_margin(plain, {.contention = 601}), plain + 480ms);
  EXPECT_EQ(needed_margin(plain, {.turn = 200ms}), plain + 400ms);
  EXPECT_EQ(needed_margin(plain, {300ms, 100ms, 6000, 7ULL << 30, 601, 200ms}), plain + 4280ms);
}

TEST(LeavesRoom, UsesTheDefaultsForWhatIsNotSet) {
  EXPECT_TRUE(leaves_room(ttl(30s), {}));
  EXPECT_FALSE(leaves_room(ttl(100ms), {}));
  EXPECT_EQ(leaves_room(ttl(2s), {std::nullopt, 700ms}), leaves_room(ttl(2s), {100ms, 700ms}));
}

TEST(LeavesRoom, ToleratesDemandsBeyondAnyTtl) {
  EXPECT_FALSE(leaves_room(ttl(Ttl::max), {Duration::max(), 0s}));
  EXPECT_FALSE(leaves_room(ttl(Ttl::max), {0s, Duration::max()}));
  EXPECT_FALSE(leaves_room(ttl(Ttl::max), {Duration::max(), Duration::max()}));
}

std::vector<TtlDemands> many_demands() {
  std::vector<TtlDemands> demands;
  const std::vector<std::optional<Duration>> spans{std::nullopt, 0s, 1ns, 1ms, 50ms,
                                                   333ms + 1ns,  1s, 5s,  61s, 1h};
  for (const auto& timeout : spans) {
    for (const auto& grace : spans) demands.push_back({timeout, grace});
  }
  return demands;
}

TEST(SmallestTtl, IsTheSmallestThatLeavesRoom) {
  for (const TtlDemands& demands : many_demands()) {
    const auto smallest = min_ttl(demands);
    ASSERT_TRUE(smallest.has_value());
    EXPECT_TRUE(leaves_room(*smallest, demands));
    if (smallest->length() > 1ms) {
      EXPECT_FALSE(leaves_room(ttl(smallest->length() - 1ms), demands))
          << smallest->length().count();
    }
  }
}

TEST(SmallestTtl, DividesAllTtlsIntoTooShortAndLongEnough) {
  for (const TtlDemands& demands : many_demands()) {
    const Milliseconds smallest = min_ttl(demands)->length();
    for (Milliseconds length = 1ms; length < 40s; length += length < 2s ? 1ms : 97ms) {
      ASSERT_EQ(leaves_room(ttl(length), demands), length >= smallest) << length.count();
    }
  }
}

TEST(SmallestTtl, IsKnownForTheDefaults) {
  EXPECT_EQ(min_ttl({})->length(), 500ms);
}

TEST(SmallestTtl, IsNulloptWhenNoTtlIsLongEnough) {
  EXPECT_EQ(min_ttl({std::nullopt, 24h * 300}), std::nullopt);
  EXPECT_EQ(min_ttl({Duration::max(), Duration::max()}), std::nullopt);
}

}  // namespace
}  // namespace redlock
