#include "core/holds.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

using namespace std::chrono_literals;

Token some_token() {
  return Token::from_text(std::string(Token::digits, 'a')).value();
}

Holder lease(std::string id = "id") {
  Holder holder;
  holder.id = LeaseId{std::move(id)};
  holder.remaining = 1h;
  holder.age = 10min;
  holder.owner = Owner();
  return holder;
}

Holder hold(Duration age = 10min) {
  Holder holder = lease();
  holder.age = age;
  holder.owner->hold_for = 1h;
  holder.hold = HoldCopy{some_token(), "{}"};
  return holder;
}

ShownLock shows(const Holder& holder) {
  return {true, &holder};
}
constexpr ShownLock nothing{true, nullptr};
constexpr ShownLock silent{};

TEST(Holds, EndWithTheirLengthWhateverTheLeaseLasts) {
  EXPECT_EQ(hold_remaining(hold()), 50min);
  EXPECT_EQ(hold_remaining(hold(2h)), std::nullopt);
  EXPECT_EQ(hold_remaining(lease()), std::nullopt);
}

TEST(Holds, TheQuorumThLargestRestCounts) {
  const Holder old = hold(30min);
  const Holder young = hold(10min);
  const Holder middle = hold(20min);
  EXPECT_EQ(find_hold({shows(old), shows(young), shows(middle)})->remaining, 40min);
  EXPECT_EQ(find_hold({shows(old), shows(young), silent})->remaining, 30min);
  EXPECT_EQ(find_hold({shows(old), silent, silent})->remaining, 30min);
}

TEST(Holds, HaveTheFenceThatAQuorumKnowsOrElseTheLargest) {
  const auto with_fence = [](std::uint64_t fence) {
    Holder holder = hold();
    holder.fence = Fence(fence);
    return holder;
  };
  const Holder low = with_fence(7);
  const Holder usual = with_fence(8);
  const Holder high = with_fence(9);
  EXPECT_EQ(find_hold({shows(low), shows(usual), shows(usual)})->holder.fence, Fence(8));
  EXPECT_EQ(find_hold({shows(high), shows(usual), shows(usual)})->holder.fence, Fence(8));
  EXPECT_EQ(find_hold({shows(low), shows(usual), silent})->holder.fence, Fence(8));
}

TEST(Holds, AreLackingWhereAServerAnsweredAndHasNoLeaseOrNoRecord) {
  const Holder full = hold();
  Holder without_record = hold();
  without_record.owner.reset();
  without_record.hold.reset();
  const Holder other = lease("other");
  const auto found = find_hold({shows(full), nothing, shows(without_record), silent, shows(other)});
  EXPECT_EQ(found->lacking, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(found->shows, 2U);
}

TEST(Holds, ALeaseThatAnotherServerShowsAsAnyOtherIsNone) {
  const Holder forged = hold();
  const Holder plain = lease();
  EXPECT_FALSE(find_hold({shows(forged), shows(plain), shows(plain)}));
}

Share slot_on_hold(const std::string& id) {
  Share share{hold(), std::nullopt, "phone"};
  share.holder.id = LeaseId{id};
  return share;
}

ShownLock shows_shares(const Holder& all, const std::vector<Share>& shares) {
  return {true, &all, shares};
}

TEST(Holds, AllSharesTogetherAreNone) {
  Holder latest = hold();
  latest.shared = true;
  EXPECT_FALSE(hold_remaining(latest));
}

TEST(Holds, OfSlotsAreFoundEachByItself) {
  Holder all = lease("shared");
  all.shared = true;
  const Holder other = lease("other");
  const std::vector<Share> both{slot_on_hold("one"), slot_on_hold("two")};
  const std::vector<Share> second{slot_on_hold("two")};
  const auto found =
      find_holds({shows_shares(all, both), shows_shares(all, second), nothing, shows(other)});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].holder.id.text, "one");
  EXPECT_EQ(found[0].shows, 1U);
  EXPECT_EQ(found[0].lacking, (std::vector<std::size_t>{1, 2})) << "not beside an exclusive lease";
  EXPECT_EQ(found[1].shows, 2U);
  EXPECT_EQ(found[1].lacking, std::vector<std::size_t>{2});
  EXPECT_EQ(found[1].remaining, 50min);
}

TEST(Holds, ASlotThatAnotherServerShowsAsAnyOtherIsNone) {
  Holder all = lease("shared");
  all.shared = true;
  const std::vector<Share> forged{slot_on_hold("id")};
  const std::vector<Share> plain{Share{lease("id"), std::nullopt, "phone"}};
  EXPECT_TRUE(find_holds({shows_shares(all, forged), shows_shares(all, plain), nothing}).empty());
}

TEST(Holds, OneServerShowsThatTheyWereLifted) {
  const Holder full = hold();
  Holder lifted = lease();
  lifted.owner->lifted = true;
  EXPECT_TRUE(find_hold({shows(full), shows(lifted), shows(full)})->is_lifted);
  EXPECT_FALSE(find_hold({shows(full), nothing, shows(full)})->is_lifted);
  EXPECT_FALSE(find_hold({shows(lifted), shows(lifted), nothing}));
}

}  // namespace
}  // namespace redlock
