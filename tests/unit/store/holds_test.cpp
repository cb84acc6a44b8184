// Holds (PROTOCOL F1-F3), at the embedded engine and at a real Redis.
#include "hold_fixture.hpp"

namespace redlock {
namespace {

using namespace testing;

/// Of the whole lock or of a slot.
class HoldsTest : public HoldFixture {};

INSTANTIATE_TEST_SUITE_P(Store, HoldsTest,
                         ::testing::Combine(::testing::ValuesIn(script_stores),
                                            ::testing::Values(HoldKind::whole, HoldKind::slot)),
                         name_of_hold);

/// Of the whole lock alone.
class WholeHoldsTest : public HoldFixture {};

INSTANTIATE_TEST_SUITE_P(Store, WholeHoldsTest,
                         ::testing::Combine(::testing::ValuesIn(script_stores),
                                            ::testing::Values(HoldKind::whole)),
                         name_of_hold);

TEST_P(HoldsTest, AUserDoesNotMoveItsEnd) {
  hold(ttl(1min));
  ASSERT_TRUE(joins(ttl(1h)));
  EXPECT_GT(pttl(), 59 * 60'000);
  EXPECT_EQ(holder().owner->hold_for, 1min);
  EXPECT_TRUE(answers<Released>(end_of_user()));
  EXPECT_LE(pttl(), 60'000);
  EXPECT_FALSE(is_free());
}

TEST_P(HoldsTest, ItsKeeperMayMakeItLonger) {
  hold(ttl(1min));
  ASSERT_TRUE(answers<Extended>(extend(std::nullopt, ttl(1h))));
  EXPECT_GE(*holder().owner->hold_for, 59min);
  ASSERT_TRUE(answers<Extended>(extend(std::nullopt, ttl(1min))));
  EXPECT_GE(*holder().owner->hold_for, 59min) << "never shorter";
}

TEST_P(HoldsTest, ALiftedOneIsThatOfItsUsers) {
  hold();
  ASSERT_TRUE(joins(ttl(30s)));
  EXPECT_TRUE(answers<Released>(lift()));
  const Holder left = holder();
  EXPECT_FALSE(left.hold);
  EXPECT_TRUE(left.owner->lifted);
  EXPECT_FALSE(left.owner->hold_for);
  EXPECT_EQ(left.users.size(), 1U);
  EXPECT_TRUE(answers<NotOurs>(heal()));
  EXPECT_TRUE(answers<Held>(attempt()));
  EXPECT_TRUE(answers<Released>(end_of_user()));
  EXPECT_TRUE(is_free());
}

TEST_P(HoldsTest, IsRestoredUntilItsOwnEnd) {
  EXPECT_TRUE(answers<Healed>(heal()));
  EXPECT_NEAR(static_cast<double>(pttl()), 45 * 60'000, 5'000) << "not for the ttl of the client";
  EXPECT_TRUE(holder().hold);
  EXPECT_NEAR(static_cast<double>(holder().age->count()), 15 * 60e9, 5e9);
}

TEST_P(HoldsTest, AUserRestoresItToo) {
  EXPECT_TRUE(answers<Healed>(heal(user())));
  EXPECT_NEAR(static_cast<double>(pttl()), 45 * 60'000, 5'000);
  EXPECT_TRUE(answers<Released>(end_of_user()));
  EXPECT_NEAR(static_cast<double>(pttl()), 45 * 60'000, 5'000);
}

TEST_P(HoldsTest, DoesNotReturnWhereItWasLifted) {
  hold();
  EXPECT_TRUE(answers<Released>(lift()));
  EXPECT_TRUE(is_free());
  const HealVote vote = heal();
  ASSERT_TRUE(answers<NotOurs>(vote));
  EXPECT_EQ(std::get<NotOurs>(vote).why, NotOurs::Why::released);
  EXPECT_TRUE(is_free());
}

TEST_P(HoldsTest, DoesNotReturnEvenWhereItWasNotWhenItWasLifted) {
  EXPECT_TRUE(answers<NotOurs>(lift()));
  EXPECT_TRUE(answers<NotOurs>(heal()));
  EXPECT_TRUE(is_free());
  ASSERT_TRUE(answers<Granted>(attempt()));
  EXPECT_TRUE(answers<NotOurs>(lift())) << "the lock of another is not touched";
  EXPECT_FALSE(is_free());
}

TEST_P(HoldsTest, MayNotReturnForAsLongAsItWouldLastAnywhere) {
  hold(ttl(1min));
  EXPECT_TRUE(answers<Released>(lift(1h)));
  EXPECT_GT(pttl(helper_.released()), 59 * 60'000);
}

TEST_P(HoldsTest, AUserBringsALiftedOneBackAsItsOwnLeaseOnly) {
  EXPECT_TRUE(answers<NotOurs>(lift()));
  EXPECT_TRUE(answers<Healed>(heal(user())));
  EXPECT_LE(pttl(), 30'000);
  EXPECT_TRUE(holder().owner->lifted);
  EXPECT_TRUE(answers<Released>(end_of_user()));
  EXPECT_TRUE(is_free());
}

TEST_P(HoldsTest, TakesNoPlaceOfAnotherLease) {
  ASSERT_TRUE(answers<Granted>(attempt()));
  const HealVote vote = heal();
  ASSERT_TRUE(answers<NotOurs>(vote));
  EXPECT_EQ(std::get<NotOurs>(vote).why, NotOurs::Why::held);
}

TEST_P(WholeHoldsTest, EveryAnswerAboutAHoldHasWhatRestoresIt) {
  hold();
  const AcquireVote refusal = attempt();
  const InspectVote asked = ask();
  for (const Holder& shown :
       {std::get<Held>(refusal).holder, std::get<Taken>(asked).holder, holder()}) {
    ASSERT_TRUE(shown.hold);
    EXPECT_EQ(shown.hold->token, token());
    EXPECT_EQ(decode_owner(shown.hold->record)->hold_for, 1h);
  }
}

TEST_P(WholeHoldsTest, NoAnswerAboutAnotherLeaseHasItsToken) {
  ASSERT_TRUE(answers<Granted>(attempt(mode(), 'a')));
  EXPECT_FALSE(std::get<Held>(attempt()).holder.hold);
  EXPECT_FALSE(holder().hold);
}

TEST_P(WholeHoldsTest, AUserThatOutlastsItFreesTheLock) {
  hold(ttl(1min));
  ASSERT_TRUE(joins(ttl(1h)));
  // As if the hold had begun a little more than a minute ago.
  const std::string began = store_->run({"HGET", helper_.owner(), "since"}).text;
  store_->run({"HSET", helper_.owner(), "since", std::to_string(std::stoll(began) - 61'000)});
  EXPECT_TRUE(answers<NotOurs>(extend(std::nullopt, ttl(1h)))) << "it has ended for its keeper";
  EXPECT_TRUE(answers<Extended>(extend(user(), ttl(1h)))) << "but not for the user";
  EXPECT_TRUE(answers<Released>(end_of_user()));
  EXPECT_TRUE(is_free());
}

TEST_P(WholeHoldsTest, ALostRecordAloneIsRestored) {
  hold();
  store_->run({"DEL", helper_.owner()});
  EXPECT_TRUE(holder().foreign);
  EXPECT_TRUE(answers<Healed>(heal()));
  EXPECT_TRUE(holder().hold);
}

}  // namespace
}  // namespace redlock
