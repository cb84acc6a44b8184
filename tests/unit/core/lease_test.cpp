#include "core/lease.hpp"

#include <gtest/gtest.h>

#include "../samples.hpp"

namespace redlock {
namespace {

using namespace std::chrono_literals;
using testing::ttl;

constexpr Instant start{1000s};

/// 10 s less 100 ms for the rates and 2 ms for rounding.
constexpr Duration ten_seconds_less_drift = 9898ms;

TEST(LeaseLife, IsHeldUntilTheDeadline) {
  LeaseLife life(ttl(10s), start);
  EXPECT_EQ(life.deadline(), start + ten_seconds_less_drift);
  EXPECT_EQ(life.state(start), LeaseState::held);
  EXPECT_EQ(life.state(life.deadline() - 1ns), LeaseState::held);
  EXPECT_EQ(life.state(life.deadline()), LeaseState::expired);
}

TEST(LeaseLife, IsDueForExtendingAfterAThirdOfTheTtl) {
  LeaseLife life(ttl(9s), start);
  EXPECT_EQ(life.next_extend(), start + 3s);
  life.confirm(start + 3s + 1ms, ttl(9s));
  EXPECT_EQ(life.next_extend(), start + 6s + 1ms);
}

TEST(LeaseLife, MovesTheDeadlineFromTheBeginningOfTheConfirmedRound) {
  LeaseLife life(ttl(10s), start);
  life.confirm(start + 4s, ttl(10s));
  EXPECT_EQ(life.deadline(), start + 4s + ten_seconds_less_drift);
  EXPECT_EQ(life.state(start + 13s), LeaseState::held);
}

TEST(LeaseLife, NeverMovesTheDeadlineBack) {
  LeaseLife life(ttl(10s), start);
  life.confirm(start + 1s, ttl(2s));
  EXPECT_EQ(life.deadline(), start + ten_seconds_less_drift);
  life.confirm(start - 5s, ttl(10s));
  EXPECT_EQ(life.deadline(), start + ten_seconds_less_drift);
}

TEST(LeaseLife, StaysExpired) {
  LeaseLife life(ttl(10s), start);
  EXPECT_EQ(life.state(start + 10s), LeaseState::expired);
  life.confirm(start + 1s, ttl(60s));
  life.lose();
  EXPECT_EQ(life.deadline(), start + ten_seconds_less_drift);
  EXPECT_EQ(life.state(start), LeaseState::expired);
}

TEST(LeaseLife, StaysLost) {
  LeaseLife life(ttl(10s), start);
  life.lose();
  life.confirm(start + 1s, ttl(60s));
  EXPECT_EQ(life.state(start), LeaseState::lost);
  EXPECT_EQ(life.state(start + 1h), LeaseState::lost);
  EXPECT_EQ(life.deadline(), start + ten_seconds_less_drift);
}

TEST(LeaseLife, IsNotBroughtBackByARoundThatBeganAfterTheEnd) {
  LeaseLife life(ttl(10s), start);
  life.confirm(life.deadline(), ttl(60s));
  EXPECT_EQ(life.deadline(), start + ten_seconds_less_drift);
  EXPECT_EQ(life.state(start), LeaseState::expired);
}

}  // namespace
}  // namespace redlock
