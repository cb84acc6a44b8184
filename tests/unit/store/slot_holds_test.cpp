// Holds of one slot of a pool (PROTOCOL F1-F3), at the embedded engine and at a real Redis. For
// what they have in common with other holds, see holds_test.cpp.
#include "hold_fixture.hpp"
#include "support/digest.hpp"

namespace redlock {
namespace {

using namespace testing;

class SlotHoldsTest : public HoldFixture {
 protected:
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
  std::optional<Share> share_in(const std::string& name) {
    const InspectVote vote = inspect();
    const auto* taken = std::get_if<Taken>(&vote);
    for (const Share& share : taken != nullptr ? taken->parties.first_shares : std::vector<Share>())
      if (share.slot_name == name) return share;
    return std::nullopt;
  }
};

INSTANTIATE_TEST_SUITE_P(Store, SlotHoldsTest,
                         ::testing::Combine(::testing::ValuesIn(script_stores),
                                            ::testing::Values(HoldKind::slot)),
                         name_of_hold);

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
  const InspectVote asked = ask();
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
  EXPECT_TRUE(answers<NotOurs>(heal(std::nullopt, in({"z"}))));
  // And where it has returned meanwhile, it is broken.
  store_->clear();
  ASSERT_TRUE(answers<Healed>(heal()));
  EXPECT_TRUE(answers<Broken>(done(server_.break_lock(request, drive_.soon()))));
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
