// Holds (PROTOCOL F1-F3), at the embedded engine and at a real Redis.
#include "../samples.hpp"
#include "script_stores.hpp"
#include "store/owner_record.hpp"

namespace redlock {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class HoldsTest : public ::testing::TestWithParam<ScriptStoreKind> {
 protected:
  static Owner owner_of_hold(Duration length) {
    Owner owner = some_owner();
    owner.hold_for = length;
    return owner;
  }
  static LeaseUser user() { return {"user1", encode_owner(some_owner())}; }

  template <class Vote>
  Vote done(asio::awaitable<Vote> question) {
    return drive_.run(std::move(question));
  }
  void hold(Ttl length = ttl(1h)) {
    AcquireRequest request{deploy(), token(), length, owner_of_hold(length.length())};
    const AcquireVote vote = done(server_.acquire(request, drive_.soon()));
    ASSERT_TRUE(answers<Granted>(vote));
  }
  AcquireVote attempt() {
    return done(server_.acquire({deploy(), token('b'), ttl(), some_owner()}, drive_.soon()));
  }
  ExtendVote extend(std::optional<LeaseUser> as, Ttl length, bool is_new = false) {
    return done(
        server_.extend({deploy(), token(), length, {}, {}, std::move(as), is_new}, drive_.soon()));
  }
  bool joins(Ttl length) { return answers<Extended>(extend(user(), length, /*is_new=*/true)); }
  ReleaseVote end_of_user() {
    ReleaseRequest request{deploy(), token()};
    request.user = user().id;
    return done(server_.release(request, drive_.soon()));
  }
  ReleaseVote lift(Duration lifted_for = 1h) {
    ReleaseRequest request{deploy(), token(), /*by_hand=*/true};
    request.tombstone_life = lifted_for;
    return done(server_.release(request, drive_.soon()));
  }
  /// Of a hold of an hour, a quarter of which has passed.
  HealVote heal(std::optional<LeaseUser> as = std::nullopt) {
    const Provenance known{15min, false, encode_owner(owner_of_hold(1h))};
    return done(server_.heal({deploy(), token(), ttl(30s), Fence(7), known, {}, std::move(as)},
                             drive_.soon()));
  }
  Holder holder() {
    const InspectVote vote = done(server_.inspect(deploy(), std::nullopt, drive_.soon()));
    const auto* taken = std::get_if<Taken>(&vote);
    EXPECT_NE(taken, nullptr);
    return taken != nullptr ? taken->holder : Holder();
  }
  bool is_free() {
    return answers<Free>(done(server_.inspect(deploy(), std::nullopt, drive_.soon())));
  }
  std::int64_t pttl() { return store_->run({"PTTL", deploy().key()}).integer; }
  void lose_everything() { store_->clear(); }

  Drive drive_;
  std::unique_ptr<ScriptStore> store_ = GetParam().make(drive_);
  LockServer& server_ = store_->client();
  HelperKeys helper_{deploy()};
};

INSTANTIATE_TEST_SUITE_P(Store, HoldsTest, ::testing::ValuesIn(script_stores),
                         [](const auto& about) { return about.param.name; });

TEST_P(HoldsTest, EveryAnswerAboutAHoldHasWhatRestoresIt) {
  hold();
  const AcquireVote refusal = attempt();
  const AskRequest question{deploy()};
  const InspectVote asked = done(server_.ask_holder(question, drive_.soon()));
  for (const Holder& shown :
       {std::get<Held>(refusal).holder, std::get<Taken>(asked).holder, holder()}) {
    ASSERT_TRUE(shown.hold);
    EXPECT_EQ(shown.hold->token, token());
    EXPECT_EQ(decode_owner(shown.hold->record)->hold_for, 1h);
  }
}

TEST_P(HoldsTest, NoAnswerAboutAnotherLeaseHasItsToken) {
  const AcquireVote granted =
      done(server_.acquire({deploy(), token(), ttl(), some_owner()}, drive_.soon()));
  ASSERT_TRUE(answers<Granted>(granted));
  EXPECT_FALSE(std::get<Held>(attempt()).holder.hold);
  EXPECT_FALSE(holder().hold);
}

TEST_P(HoldsTest, AUserDoesNotMoveItsEnd) {
  hold(ttl(1min));
  ASSERT_TRUE(joins(ttl(1h)));
  EXPECT_GT(pttl(), 59 * 60'000);
  EXPECT_EQ(holder().owner->hold_for, 1min);
  EXPECT_TRUE(answers<Released>(end_of_user()));
  EXPECT_LE(pttl(), 60'000);
  EXPECT_FALSE(is_free());
}

TEST_P(HoldsTest, AUserThatOutlastsItFreesTheLock) {
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
  EXPECT_GT(store_->run({"PTTL", helper_.released()}).integer, 59 * 60'000);
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

TEST_P(HoldsTest, ALostRecordAloneIsRestored) {
  hold();
  store_->run({"DEL", helper_.owner()});
  EXPECT_TRUE(holder().foreign);
  EXPECT_TRUE(answers<Healed>(heal()));
  EXPECT_TRUE(holder().hold);
}

}  // namespace
}  // namespace redlock
