#include "output/check.hpp"

#include <gtest/gtest.h>

namespace redlock::output {
namespace {

using namespace std::chrono_literals;

/// Held for this long by a `run`.
Holder holder(std::optional<Duration> age) {
  Holder holder;
  holder.remaining = 28s;
  holder.age = age;
  holder.owner = Owner{"web1", "ci", "backup", "", 4711, /*supervised=*/true, 30s};
  return holder;
}

Holder kept(Duration age) {
  Holder kept = holder(age);
  kept.owner->finished = Finished{50s, 0, {}};
  return kept;
}

Inspection held(Holder holder, LockParties parties = {}) {
  return summarize({Taken{std::move(holder), std::move(parties)}});
}

/// A lock that has been shared for a day by `count` processes, of which `shares` are listed.
Inspection shared(const std::vector<Holder>& shares, std::size_t count) {
  LockParties parties;
  parties.shares = count;
  for (const Holder& share : shares) parties.first_shares.push_back({share, std::nullopt});
  Holder all = holder(24h);
  all.shared = true;
  return held(all, parties);
}

TEST(HeldFor, IsHowLongACommandHasHeldTheLock) {
  EXPECT_EQ(held_for(summarize({Free{}})), 0s);
  EXPECT_EQ(held_for(held(holder(3h))), 3h);
  EXPECT_EQ(held_for(held(kept(3h))), 0s);
  EXPECT_EQ(held_for(held(holder(std::nullopt))), std::nullopt);
  EXPECT_EQ(held_for(summarize({Fault{}})), std::nullopt);
  // A remnant on one server of three does not hold the lock.
  EXPECT_EQ(held_for(summarize({Taken{holder(3h)}, Free{}, Free{}})), 0s);
}

TEST(HeldFor, IsNothingWhileAnotherKeyIsWaitedFor) {
  Holder waiting = holder(3h);
  waiting.waits_for = AwaitedLock{Resource::from("b").value(), 1};
  EXPECT_EQ(held_for(held(waiting)), 0s);
  EXPECT_EQ(held_for(shared({waiting, holder(2h)}, 2)), 2h);
  EXPECT_EQ(held_for(shared({waiting}, 1)), 0s);
}

TEST(HeldFor, IsTheAgeOfTheOldestShare) {
  EXPECT_EQ(held_for(shared({holder(2h), holder(5h), kept(7h)}, 3)), 5h);
  EXPECT_EQ(held_for(shared({kept(2h)}, 1)), 0s);
  // If a share is not listed, or its age is unknown, it may be as old as the shared lock itself.
  EXPECT_EQ(held_for(shared({holder(2h)}, 17)), 24h);
  EXPECT_EQ(held_for(shared({holder(2h), holder(std::nullopt)}, 2)), 24h);
}

TEST(Check, IsWithinItsLimitsOnlyIfThatIsKnown) {
  const CheckLimits limit{std::nullopt, 3h};
  EXPECT_TRUE(check(held(holder(3h)), limit).within);
  EXPECT_FALSE(check(held(holder(3h + 1ms)), limit).within);
  EXPECT_FALSE(check(held(holder(std::nullopt)), limit).within);
  EXPECT_FALSE(check(summarize({Fault{}}), limit).within);
  EXPECT_FALSE(check(held(holder(1h)), {26h, 3h}).within) << "no success is known";
}

}  // namespace
}  // namespace redlock::output
