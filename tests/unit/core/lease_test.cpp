#include "core/lease.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

using namespace std::chrono_literals;

constexpr Instant start{1000s};

constexpr Instant end = start + 10s;

TEST(LeaseClaims, LastUntilTheQuorumthLargestDeadline) {
  LeaseClaims claims(3);
  EXPECT_FALSE(claims.deadline());
  claims.note(0, start, end);
  EXPECT_FALSE(claims.deadline());
  claims.note(1, start + 2s, end + 2s);
  EXPECT_EQ(claims.deadline(), end) << "each counts from its own request";
  claims.note(2, start + 4s, end + 4s);
  EXPECT_EQ(claims.deadline(), end + 2s);
}

TEST(LeaseClaims, OfOneProcessCountOnce) {
  LeaseClaims claims(3);
  claims.note(0, start, end, "a");
  claims.note(1, start + 1s, end + 1s, "a");
  EXPECT_EQ(claims.deadline(), std::nullopt);
  claims.note(2, start, end, "b");
  EXPECT_EQ(claims.deadline(), end);
}

TEST(LeaseClaims, AreTheAnswersToTheRequestsThatWereAskedLast) {
  LeaseClaims claims(1);
  claims.note(0, start + 2s, std::nullopt);
  claims.note(0, start, end);
  EXPECT_FALSE(claims.deadline()) << "the lease was lost after this answer";
  claims.note(0, start + 4s, end + 4s);
  claims.note(0, start + 3s, std::nullopt);
  EXPECT_EQ(claims.deadline(), end + 4s) << "the lease was healed after that answer";
}

TEST(LeaseLife, IsHeldUntilTheDeadline) {
  LeaseLife life(end);
  EXPECT_EQ(life.deadline(), end);
  EXPECT_EQ(life.state(start), LeaseState::held);
  EXPECT_EQ(life.state(end - 1ns), LeaseState::held);
  EXPECT_EQ(life.state(end), LeaseState::expired);
}

TEST(LeaseLife, LastsUntilTheDeadlineOfTheConfirmedRound) {
  LeaseLife life(end);
  life.confirm(start + 4s, end + 4s);
  EXPECT_EQ(life.deadline(), end + 4s);
  EXPECT_EQ(life.state(end + 3s), LeaseState::held);
}

TEST(LeaseLife, NeverMovesTheDeadlineBack) {
  LeaseLife life(end);
  life.confirm(start + 1s, end - 1s);
  EXPECT_EQ(life.deadline(), end);
}

TEST(LeaseLife, StaysExpired) {
  LeaseLife life(end);
  EXPECT_EQ(life.state(end), LeaseState::expired);
  life.confirm(start + 1s, end + 1min);
  life.lose();
  EXPECT_EQ(life.deadline(), end);
  EXPECT_EQ(life.state(start), LeaseState::expired);
}

TEST(LeaseLife, StaysLost) {
  LeaseLife life(end);
  life.lose();
  life.confirm(start + 1s, end + 1min);
  EXPECT_EQ(life.state(start), LeaseState::lost);
  EXPECT_EQ(life.state(start + 1h), LeaseState::lost);
  EXPECT_EQ(life.deadline(), end);
}

TEST(LeaseLife, IsNotBroughtBackByARoundThatBeganAfterTheEnd) {
  LeaseLife life(end);
  life.confirm(end, end + 1min);
  EXPECT_EQ(life.deadline(), end);
  EXPECT_EQ(life.state(start), LeaseState::expired);
}

}  // namespace
}  // namespace redlock
