// Holds of one slot of a pool (PROTOCOL F1-F3), at the embedded engine and at a real Redis.
#include "../samples.hpp"
#include "script_stores.hpp"
#include "store/owner_record.hpp"
#include "support/digest.hpp"

namespace redlock {
namespace {

using namespace testing;
using namespace std::chrono_literals;

using Names = std::vector<std::string>;

Mode devices(Names names) {
  const std::size_t slots = names.size();
  return {true, slots, 1, std::move(names)};
}

class SlotHoldsTest : public ::testing::TestWithParam<ScriptStoreKind> {
 protected:
  static Owner owner_of_hold(Duration length) {
    Owner owner = some_owner();
    owner.slots = 3;
    owner.hold_for = length;
    return owner;
  }
  static LeaseUser user() { return {"user1", encode_owner(some_owner())}; }
  static Hold in(Names names) { return {true, {}, std::move(names)}; }

  template <class Vote>
  Vote done(asio::awaitable<Vote> question) {
    return drive_.run(std::move(question));
  }
  void hold(Ttl length = ttl(1h), const Mode& mode = devices({"y"})) {
    AcquireRequest request{deploy(), token(), length, owner_of_hold(length.length()), mode};
    const AcquireVote vote = done(server_.acquire(request, drive_.soon()));
    ASSERT_TRUE(answers<Granted>(vote));
  }
  AcquireVote attempt(const Mode& mode, char digit = 'b') {
    Owner owner = some_owner();
    owner.slots = mode.slots;
    return done(server_.acquire({deploy(), token(digit), ttl(), owner, mode}, drive_.soon()));
  }
  Names take(Names names, char digit = 'b') {
    const Mode mode = devices(std::move(names));
    const AcquireVote vote = attempt(mode, digit);
    const auto* granted = std::get_if<Granted>(&vote);
    return granted == nullptr ? Names() : hold_in(mode, granted->slots).slot_names;
  }
  std::vector<Share> holds_in(const AcquireVote& vote) {
    const auto* held = std::get_if<Held>(&vote);
    EXPECT_NE(held, nullptr) << vote.index();
    return held != nullptr ? held->holds : std::vector<Share>();
  }
  ExtendVote extend(std::optional<LeaseUser> as, Ttl length, bool is_new = false) {
    ExtendRequest request{deploy(), token(), length, {}, {}, std::move(as), is_new};
    request.slot_names = {"y"};
    return done(server_.extend(std::move(request), drive_.soon()));
  }
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
  HealVote heal(const Hold& how = in({"y"}), std::optional<LeaseUser> as = std::nullopt) {
    const Provenance known{15min, false, record_};
    return done(server_.heal({deploy(), token(), ttl(30s), Fence(7), known, how, std::move(as)},
                             drive_.soon()));
  }
  InspectVote inspect() { return done(server_.inspect(deploy(), std::nullopt, drive_.soon())); }
  std::optional<Share> share_in(const std::string& name) {
    const InspectVote vote = inspect();
    const auto* taken = std::get_if<Taken>(&vote);
    for (const Share& share : taken != nullptr ? taken->parties.first_shares : std::vector<Share>())
      if (share.slot_name == name) return share;
    return std::nullopt;
  }
  InspectVote ask(const std::string& slot) {
    const AskRequest question{deploy(), std::nullopt, slot};
    return done(server_.ask_holder(question, drive_.soon()));
  }
  std::int64_t pttl() { return store_->run({"PTTL", deploy().key()}).integer; }

  Drive drive_;
  std::unique_ptr<ScriptStore> store_ = GetParam().make(drive_);
  LockServer& server_ = store_->client();
  HelperKeys helper_{deploy()};
  /// As the servers keep it.
  std::string record_ = [] {
    std::string record = encode_owner(owner_of_hold(1h));
    record.pop_back();
    return record + R"(,"token":")" + token().secret() + R"("})";
  }();
};

INSTANTIATE_TEST_SUITE_P(Store, SlotHoldsTest, ::testing::ValuesIn(script_stores),
                         [](const auto& about) { return about.param.name; });

TEST_P(SlotHoldsTest, LeaveTheOtherSlotsToOthers) {
  hold();
  EXPECT_EQ(take({"x", "y"}), Names{"x"});
  EXPECT_EQ(take({"y", "z"}, 'c'), Names{"z"});
  EXPECT_TRUE(answers<Held>(attempt(devices({"y"}), 'd')));
  EXPECT_TRUE(answers<Held>(attempt({}, 'd')));
}

TEST_P(SlotHoldsTest, EveryRefusalAndInspectionHasWhatRestoresThem) {
  hold();
  ASSERT_EQ(take({"x"}), Names{"x"});
  std::vector<Share> shown;
  for (const Mode& wanted : {devices({"y"}), devices({"x", "y"}), Mode{}}) {
    const std::vector<Share> holds = holds_in(attempt(wanted, 'c'));
    ASSERT_EQ(holds.size(), 1U);
    shown.push_back(holds.front());
  }
  shown.push_back(share_in("y").value());
  for (const Share& share : shown) {
    ASSERT_TRUE(share.holder.hold);
    EXPECT_EQ(share.holder.hold->token, token());
    EXPECT_EQ(share.holder.hold->how, in({"y"}));
    EXPECT_EQ(decode_owner(share.holder.hold->record)->hold_for, 1h);
    EXPECT_EQ(share.holder.id, LeaseId{sha1_hex(token().secret())});
  }
  const InspectVote asked = ask("y");
  ASSERT_TRUE(answers<Taken>(asked));
  EXPECT_EQ(std::get<Taken>(asked).holder.hold.value().token, token());
}

TEST_P(SlotHoldsTest, ByNumberTheyHaveTheirNumber) {
  hold(ttl(1h), {true, 1, 1, {"2"}});
  const std::vector<Share> holds = holds_in(attempt({true, 1, 1, {"2"}}));
  ASSERT_EQ(holds.size(), 1U);
  EXPECT_EQ(holds.front().holder.hold.value().how, (Hold{true, {2}, {}}));
}

TEST_P(SlotHoldsTest, NoOtherShareHasItsToken) {
  ASSERT_EQ(take({"x"}), Names{"x"});
  EXPECT_TRUE(holds_in(attempt(devices({"x"}), 'c')).empty());
  EXPECT_FALSE(share_in("x").value().holder.hold);
  const std::string stored =
      store_->run({"HGET", helper_.shares(), sha1_hex(token('b').secret())}).text;
  EXPECT_EQ(stored.find(token('b').secret()), std::string::npos);
}

TEST_P(SlotHoldsTest, ManyOthersDoNotHideThem) {
  hold();
  for (int i = 0; i < 20; ++i) {
    const Mode mode = devices({"device" + std::to_string(i)});
    const Token other = Token::from_text(std::string(30, 'e') + std::to_string(10 + i)).value();
    const AcquireVote vote =
        done(server_.acquire({deploy(), other, ttl(), some_owner(), mode}, drive_.soon()));
    ASSERT_TRUE(answers<Granted>(vote));
  }
  EXPECT_EQ(holds_in(attempt(devices({"y"}))).size(), 1U);
  EXPECT_TRUE(share_in("y").value().holder.hold);
}

TEST_P(SlotHoldsTest, AreRestoredUntilTheirOwnEndWhereTheSlotIsFree) {
  ASSERT_EQ(take({"x"}), Names{"x"});
  EXPECT_TRUE(answers<Healed>(heal()));
  EXPECT_NEAR(static_cast<double>(pttl()), 45 * 60'000, 5'000) << "not for the ttl of the client";
  const Share restored = share_in("y").value();
  EXPECT_TRUE(restored.holder.hold);
  EXPECT_NEAR(static_cast<double>(restored.holder.age->count()), 15 * 60e9, 5e9);
  EXPECT_EQ(take({"x", "y", "z"}, 'c'), Names{"z"});
}

TEST_P(SlotHoldsTest, TakeNoSlotOfAnotherEvenIfTheTableIsLost) {
  ASSERT_EQ(take({"y"}), Names{"y"});
  EXPECT_TRUE(answers<NotOurs>(heal()));
  store_->run({"DEL", helper_.slots()});
  EXPECT_TRUE(answers<NotOurs>(heal()));
  store_->run({"DEL", helper_.shares()});
  EXPECT_TRUE(answers<Fault>(heal())) << "a share that cannot be read may be in any slot";
  EXPECT_EQ(std::get<Taken>(inspect()).parties.shares, 1U);
}

TEST_P(SlotHoldsTest, AreNotRestoredBesideSlotsOfTheOtherKind) {
  const AcquireVote vote = attempt({true, 4});
  ASSERT_TRUE(answers<Granted>(vote));
  EXPECT_TRUE(answers<Fault>(heal()));
  EXPECT_EQ(std::get<Taken>(inspect()).parties.shares, 1U);
}

TEST_P(SlotHoldsTest, ALostRecordOrTableAloneIsRestored) {
  hold();
  store_->run({"DEL", helper_.shares()});
  EXPECT_FALSE(share_in("y"));
  EXPECT_TRUE(answers<Healed>(heal()));
  EXPECT_TRUE(share_in("y").value().holder.hold);
  store_->run({"DEL", helper_.slots()});
  EXPECT_TRUE(answers<Healed>(heal()));
  EXPECT_EQ(store_->run({"HGET", helper_.slots(), "y"}).text, sha1_hex(token().secret()));
}

TEST_P(SlotHoldsTest, DoNotReturnWhereTheyWereLifted) {
  hold();
  EXPECT_TRUE(answers<Released>(lift()));
  EXPECT_TRUE(answers<Free>(inspect()));
  const HealVote vote = heal();
  ASSERT_TRUE(answers<NotOurs>(vote));
  EXPECT_EQ(std::get<NotOurs>(vote).why, NotOurs::Why::released);
  store_->clear();
  EXPECT_TRUE(answers<NotOurs>(lift())) << "where it was not";
  EXPECT_TRUE(answers<NotOurs>(heal()));
  EXPECT_GT(store_->run({"PTTL", helper_.released()}).integer, 59 * 60'000);
}

TEST_P(SlotHoldsTest, AreBrokenAloneAndDoNotReturn) {
  hold();
  ASSERT_EQ(take({"x"}), Names{"x"});
  BreakRequest request{deploy(), {}, some_owner()};
  request.slot = "y";
  const BreakVote broken = done(server_.break_lock(request, drive_.soon()));
  ASSERT_TRUE(answers<Broken>(broken));
  EXPECT_EQ(std::get<Broken>(broken).holder.owner->hold_for, 1h);
  EXPECT_TRUE(answers<NotOurs>(heal()));
  // Where another has the slot by now, only the tombstone is left.
  store_->clear();
  ASSERT_EQ(take({"y"}), Names{"y"});
  request.hold = LeaseId{sha1_hex(token().secret())};
  request.tombstone_life = 1h;
  EXPECT_TRUE(answers<NothingToBreak>(done(server_.break_lock(request, drive_.soon()))));
  EXPECT_TRUE(share_in("y"));
  EXPECT_TRUE(answers<NotOurs>(heal(in({"z"}))));
  // And where it has returned meanwhile, it is broken.
  store_->clear();
  ASSERT_TRUE(answers<Healed>(heal()));
  EXPECT_TRUE(answers<Broken>(done(server_.break_lock(request, drive_.soon()))));
  EXPECT_TRUE(answers<Free>(inspect()));
}

TEST_P(SlotHoldsTest, TheirKeeperMayMakeThemLonger) {
  hold(ttl(1min));
  ASSERT_TRUE(answers<Extended>(extend(std::nullopt, ttl(1h))));
  EXPECT_GE(*share_in("y")->holder.owner->hold_for, 59min);
  ASSERT_TRUE(answers<Extended>(extend(std::nullopt, ttl(1min))));
  EXPECT_GE(*share_in("y")->holder.owner->hold_for, 59min) << "never shorter";
}

TEST_P(SlotHoldsTest, AUserDoesNotMoveTheirEnd) {
  hold(ttl(1min));
  ASSERT_TRUE(answers<Extended>(extend(user(), ttl(1h), /*is_new=*/true)));
  EXPECT_GT(pttl(), 59 * 60'000);
  EXPECT_EQ(share_in("y")->holder.owner->hold_for, 1min);
  EXPECT_TRUE(answers<Released>(end_of_user()));
  EXPECT_LE(pttl(), 60'000);
  EXPECT_TRUE(share_in("y"));
}

TEST_P(SlotHoldsTest, LiftedTheyAreThoseOfTheirUsers) {
  hold();
  ASSERT_TRUE(answers<Extended>(extend(user(), ttl(30s), /*is_new=*/true)));
  EXPECT_TRUE(answers<Released>(lift()));
  const Holder left = share_in("y").value().holder;
  EXPECT_FALSE(left.hold);
  EXPECT_TRUE(left.owner->lifted);
  EXPECT_EQ(std::get<Taken>(ask("y")).holder.users.size(), 1U);
  EXPECT_TRUE(answers<NotOurs>(heal()));
  EXPECT_EQ(take({"y"}), Names());
  EXPECT_TRUE(answers<Released>(end_of_user()));
  EXPECT_EQ(take({"y"}), Names{"y"});
}

TEST_P(SlotHoldsTest, AUserBringsALiftedOneBackAsItsOwnLeaseOnly) {
  EXPECT_TRUE(answers<NotOurs>(lift()));
  EXPECT_TRUE(answers<Healed>(heal(in({"y"}), user())));
  EXPECT_LE(pttl(), 30'000);
  EXPECT_TRUE(share_in("y")->holder.owner->lifted);
  EXPECT_TRUE(answers<Released>(end_of_user()));
  EXPECT_TRUE(answers<Free>(inspect()));
}

TEST_P(SlotHoldsTest, TheLatestOfThePoolIsOneWithAProcess) {
  ASSERT_EQ(take({"x"}), Names{"x"});
  hold();
  const Holder all = std::get<Taken>(inspect()).holder;
  EXPECT_TRUE(all.shared);
  EXPECT_FALSE(all.owner.value().hold_for);
  EXPECT_FALSE(all.hold);
}

}  // namespace
}  // namespace redlock
