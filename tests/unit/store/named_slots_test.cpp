// A pool of named slots, at the embedded engine and at a real Redis.
#include <set>
#include <sstream>

#include "../samples.hpp"
#include "script_stores.hpp"
#include "support/digest.hpp"

namespace redlock {
namespace {

using namespace testing;
using namespace std::chrono_literals;

using Names = std::vector<std::string>;

Mode pool(Names names, std::size_t take = 1) {
  const std::size_t slots = names.size();
  return {true, slots, take, std::move(names)};
}

class NamedSlotsTest : public ::testing::TestWithParam<ScriptStoreKind> {
 protected:
  /// As a client that does not wait; with a ticket, as a waiter that polls.
  AcquireVote acquire(char digit, const Mode& mode, Ticket ticket = 0) {
    Owner owner = some_owner();
    owner.slots = mode.slots;
    owner.take = mode.take;
    AcquireRequest request{deploy(), token(digit), ttl(), owner, mode};
    if (ticket > 0)
      request.entry = QueueEntry{std::string("waiter") + digit, ticket, /*polls=*/true, 30s};
    return drive_.run(server_.acquire(std::move(request), drive_.soon()));
  }
  /// The names of the slots that it granted; empty: none.
  static Names names_of(const AcquireVote& vote, const Mode& mode) {
    const auto* granted = std::get_if<Granted>(&vote);
    return granted == nullptr ? Names() : hold_in(mode, granted->slots).slot_names;
  }
  Names take(char digit, const Mode& mode, Ticket ticket = 0) {
    return names_of(acquire(digit, mode, ticket), mode);
  }
  std::string free_of(char digit, const Mode& mode) {
    const AcquireVote vote = acquire(digit, mode);
    const auto* held = std::get_if<Held>(&vote);
    EXPECT_NE(held, nullptr) << vote.index();
    return held != nullptr ? held->queue.free_slots : "";
  }
  FaultKind fault_of(const AcquireVote& vote) {
    const auto* fault = std::get_if<Fault>(&vote);
    EXPECT_NE(fault, nullptr) << vote.index();
    return fault != nullptr ? fault->kind : FaultKind::garbage;
  }
  /// The embedded engine leaves the meaning of errors to its caller.
  static FaultKind misconfigured() {
    return GetParam().name == "Redis" ? FaultKind::misconfigured : FaultKind::denied;
  }
  ExtendVote extend(char digit, Names names) {
    ExtendRequest request{deploy(), token(digit), ttl(60s)};
    request.slot_names = std::move(names);
    return drive_.run(server_.extend(std::move(request), drive_.soon()));
  }
  HealVote heal(char digit, Names names) {
    const Provenance known{0ms, true, encode_owner(some_owner())};
    return drive_.run(server_.heal(
        {deploy(), token(digit), ttl(), Fence(7), known, Hold{true, {}, std::move(names)}},
        drive_.soon()));
  }
  /// Whether the waiter is notified and has not polled since: see queue.lua.
  bool is_notified(char digit) {
    std::istringstream entry(
        store_->run({"HGET", helper_.waiters(), std::string("waiter") + digit}).text);
    std::string mode, polls, ends, notified;
    entry >> mode >> polls >> ends >> notified;
    EXPECT_NE(notified, "") << digit;
    return notified != "0";
  }
  ReleaseVote release(char digit) {
    return drive_.run(server_.release({deploy(), token(digit)}, drive_.soon()));
  }
  Taken inspect(Names names = {}) {
    return std::get<Taken>(drive_.run(
        server_.inspect(deploy(), std::nullopt, drive_.soon(), {RunsTold::last, names})));
  }

  Drive drive_;
  std::unique_ptr<ScriptStore> store_ = GetParam().make(drive_);
  LockServer& server_ = store_->client();
  HelperKeys helper_{deploy()};
};

INSTANTIATE_TEST_SUITE_P(Store, NamedSlotsTest, ::testing::ValuesIn(script_stores),
                         [](const auto& about) { return about.param.name; });

TEST_P(NamedSlotsTest, TheOrderOfTheirNamesDoesNotMatter) {
  EXPECT_EQ(take('a', pool({"x", "y"})), Names{"x"});
  EXPECT_EQ(take('b', pool({"x", "y"})), Names{"y"});
  EXPECT_EQ(free_of('c', pool({"y", "x"})), "00");
  EXPECT_TRUE(answers<Released>(release('b')));
  EXPECT_EQ(take('c', pool({"z", "x"})), Names{"z"});
  EXPECT_EQ(free_of('d', pool({"x", "z"})), "00");
  EXPECT_EQ(take('d', pool({"x", "z", "y"})), Names{"y"}) << "by its third place";
}

TEST_P(NamedSlotsTest, ANameThatLooksLikeANumberIsNone) {
  EXPECT_EQ(take('a', pool({"1e3", "0x10"})), Names{"1e3"});
  EXPECT_EQ(take('b', pool({"0x10", "1e3"})), Names{"0x10"});
  EXPECT_TRUE(answers<Extended>(extend('a', {"1e3"})));
}

TEST_P(NamedSlotsTest, NumbersAndNamesExcludeEachOther) {
  EXPECT_EQ(take('a', pool({"x", "y"})), Names{"x"});
  EXPECT_EQ(fault_of(acquire('b', {true, 4})), misconfigured());
  EXPECT_TRUE(answers<Held>(acquire('b', {})));
  EXPECT_TRUE(answers<Released>(release('a')));
  EXPECT_TRUE(answers<Granted>(acquire('b', {true, 4})));
  EXPECT_EQ(fault_of(acquire('a', pool({"x", "y"}))), misconfigured());
  // Also if the table of slots was lost.
  store_->run({"DEL", helper_.slots()});
  EXPECT_EQ(fault_of(acquire('a', pool({"x", "y"}))), misconfigured());
  EXPECT_TRUE(answers<Released>(release('b')));
  EXPECT_EQ(take('a', pool({"x", "y"})), Names{"x"});
}

TEST_P(NamedSlotsTest, AreExtendedAndHealedByName) {
  EXPECT_EQ(take('a', pool({"x", "y"}, 2)), (Names{"x", "y"}));
  EXPECT_TRUE(answers<NotOurs>(extend('a', {"x", "z"})));
  EXPECT_TRUE(answers<NotOurs>(extend('a', {"y", "x"})));
  EXPECT_TRUE(answers<Extended>(extend('a', {"x", "y"})));

  store_->clear();
  EXPECT_EQ(take('b', pool({"y", "x"})), Names{"y"});
  EXPECT_TRUE(answers<NotOurs>(heal('a', {"x", "y"}))) << "another has y";
  EXPECT_TRUE(answers<Released>(release('b')));
  EXPECT_TRUE(answers<Healed>(heal('a', {"x", "y"})));
  EXPECT_EQ(free_of('b', pool({"y", "x"})), "00");
  EXPECT_TRUE(answers<Extended>(extend('a', {"x", "y"})));
}

TEST_P(NamedSlotsTest, WithoutItsTableASlotIsStillTaken) {
  EXPECT_EQ(take('a', pool({"x", "y"})), Names{"x"});
  store_->run({"DEL", helper_.slots()});
  EXPECT_EQ(take('b', pool({"x", "y"})), Names{"y"});
  EXPECT_TRUE(answers<Extended>(extend('a', {"x"})));
  EXPECT_EQ(store_->run({"HGET", helper_.slots(), "x"}).text, sha1_hex(token('a').secret()));
}

TEST_P(NamedSlotsTest, AShareThatCannotBeReadIsInAnySlot) {
  for (const bool by_name : {true, false}) {
    const Mode mode = by_name ? pool({"x", "y"}) : Mode{true, 2};
    for (const Words& damage : {Words{"DEL", helper_.shares()},
                                Words{"HSET", helper_.shares(), sha1_hex(token('a').secret()),
                                      "1 2 0 in-another-format{}"}}) {
      store_->clear();
      ASSERT_TRUE(answers<Granted>(acquire('a', mode)));
      store_->run({"DEL", helper_.slots()});
      store_->run(damage);
      EXPECT_TRUE(answers<Fault>(acquire('b', mode)));
      EXPECT_TRUE(answers<Fault>(acquire('b', pool({"z"}))));
    }
  }
}

TEST_P(NamedSlotsTest, AWaiterForOneSlotKeepsNobodyFromTheOthers) {
  const Mode any = pool({"x", "y", "z"});
  const Mode only_y = pool({"y"});
  EXPECT_EQ(take('a', pool({"y"})), Names{"y"});
  EXPECT_EQ(take('b', only_y, 1), Names());
  EXPECT_EQ(take('c', any, 2), Names{"x"});
  EXPECT_EQ(take('d', any), Names{"z"}) << "without waiting, too";

  EXPECT_TRUE(answers<Released>(release('a')));
  // It comes first for y: those behind leave it alone, whether they wait or not.
  EXPECT_EQ(take('e', any, 3), Names());
  EXPECT_EQ(free_of('f', any), "000");
  EXPECT_TRUE(answers<Released>(release('c')));
  EXPECT_EQ(free_of('f', pool({"y"})), "0");
  EXPECT_EQ(take('e', any, 3), Names{"x"});
  EXPECT_EQ(take('b', only_y, 1), Names{"y"});
}

TEST_P(NamedSlotsTest, WaitersForTheSameSlotAreServedInTurn) {
  EXPECT_EQ(take('a', pool({"y"})), Names{"y"});
  EXPECT_EQ(take('b', pool({"y"}), 1), Names());
  EXPECT_EQ(take('c', pool({"y", "x"}), 2), Names{"x"});
  EXPECT_EQ(take('d', pool({"x", "y"}), 3), Names());
  const AcquireVote last = acquire('e', pool({"y"}), 4);
  ASSERT_TRUE(answers<Held>(last));
  EXPECT_EQ(std::get<Held>(last).queue.ahead, 2U);
  const AcquireVote other = acquire('f', pool({"z"}), 5);
  EXPECT_TRUE(answers<Granted>(other)) << "none before it wants z";
  EXPECT_TRUE(answers<Released>(release('a')));
  EXPECT_EQ(take('e', pool({"y"}), 4), Names());
  EXPECT_EQ(take('d', pool({"x", "y"}), 3), Names());
  EXPECT_EQ(take('b', pool({"y"}), 1), Names{"y"});
}

TEST_P(NamedSlotsTest, AReleaseNotifiesTheFirstThatItHelps) {
  EXPECT_EQ(take('a', pool({"y"})), Names{"y"});
  EXPECT_EQ(take('b', pool({"y"}), 1), Names());
  EXPECT_EQ(take('c', pool({"x"})), Names{"x"});
  EXPECT_EQ(take('d', pool({"x"}), 2), Names());
  EXPECT_EQ(take('e', pool({"x", "y"}), 3), Names());
  EXPECT_TRUE(answers<Held>(acquire('f', {}, 4)));
  EXPECT_TRUE(answers<Released>(release('c')));
  EXPECT_TRUE(is_notified('d'));
  for (const char other : {'b', 'e', 'f'}) EXPECT_FALSE(is_notified(other)) << other;
  // What is offered to one keeps no other from its own.
  EXPECT_TRUE(answers<Released>(release('a')));
  EXPECT_TRUE(is_notified('b'));
}

TEST_P(NamedSlotsTest, AWriterBehindThemKeepsOthersOut) {
  EXPECT_EQ(take('a', pool({"y"})), Names{"y"});
  EXPECT_EQ(take('b', pool({"y"}), 1), Names());
  EXPECT_TRUE(answers<Held>(acquire('c', {}, 2)));
  EXPECT_EQ(take('d', pool({"x"}), 3), Names());
  EXPECT_EQ(take('e', pool({"x"})), Names());
}

TEST_P(NamedSlotsTest, SeveralAreCollectedInTurn) {
  const Mode any = pool({"x", "y", "z"});
  EXPECT_EQ(take('a', any), Names{"x"});
  EXPECT_EQ(take('b', any), Names{"y"});
  EXPECT_EQ(take('c', pool({"x", "y", "z"}, 2), 1), Names());
  EXPECT_EQ(take('d', any, 2), Names()) << "z is left to the first";
  EXPECT_EQ(take('e', pool({"w", "z"}), 3), Names{"w"});
  EXPECT_TRUE(answers<Released>(release('b')));
  EXPECT_EQ(take('c', pool({"x", "y", "z"}, 2), 1), (Names{"y", "z"}));
}

TEST_P(NamedSlotsTest, OneNumberOfAPoolCanBeWanted) {
  const Mode second{true, 1, 1, {"1"}};
  EXPECT_TRUE(answers<Granted>(acquire('a', second)));
  EXPECT_TRUE(answers<Held>(acquire('b', second, 1)));
  const AcquireVote first = acquire('c', {true, 3});
  ASSERT_TRUE(answers<Granted>(first));
  EXPECT_EQ(std::get<Granted>(first).slots, Slots{0});
  EXPECT_TRUE(answers<Released>(release('a')));
  const AcquireVote third = acquire('d', {true, 3});
  ASSERT_TRUE(answers<Granted>(third)) << "slot 1 is left to its waiter";
  EXPECT_EQ(std::get<Granted>(third).slots, Slots{2});
  EXPECT_TRUE(answers<Granted>(acquire('b', second, 1)));
}

TEST_P(NamedSlotsTest, AreShownAndAskedByName) {
  EXPECT_EQ(take('a', pool({"x", "y", "z"})), Names{"x"});
  EXPECT_EQ(take('b', pool({"z"})), Names{"z"});
  const Taken seen = inspect({"z", "y", "x"});
  EXPECT_EQ(seen.parties.free_slots.substr(0, 3), "010");
  std::set<std::string> shown;
  for (const Share& share : seen.parties.first_shares) shown.insert(share.slot_name);
  EXPECT_EQ(shown, (std::set<std::string>{"x", "z"}));
  EXPECT_EQ(inspect().parties.free_slots.find('1'), std::string::npos) << "unknown is not free";

  const auto ask = [&](const std::string& slot) {
    return drive_.run(server_.ask_holder({deploy(), std::nullopt, slot}, drive_.soon()));
  };
  EXPECT_TRUE(answers<Free>(ask("y")));
  EXPECT_EQ(std::get<Taken>(ask("z")).holder.id.text, sha1_hex(token('b').secret()));
  EXPECT_TRUE(answers<Fault>(ask("1"))) << "the slots have names";
}

TEST_P(NamedSlotsTest, TheLeaseInOneCanBeBroken) {
  EXPECT_EQ(take('a', pool({"x", "y", "z"}, 2)), (Names{"x", "y"}));
  EXPECT_EQ(take('b', pool({"z"})), Names{"z"});
  const auto break_slot = [&](const std::string& slot) {
    BreakRequest request{deploy(), {}, some_owner()};
    request.slot = slot;
    return drive_.run(server_.break_lock(std::move(request), drive_.soon()));
  };
  EXPECT_TRUE(answers<NothingToBreak>(break_slot("w")));
  ASSERT_TRUE(answers<Broken>(break_slot("y")));
  const ExtendVote lost = extend('a', {"x", "y"});
  ASSERT_TRUE(answers<NotOurs>(lost));
  EXPECT_TRUE(std::get<NotOurs>(lost).breaker);
  EXPECT_TRUE(answers<NotOurs>(heal('a', {"x", "y"})));
  EXPECT_TRUE(answers<Extended>(extend('b', {"z"})));
  EXPECT_EQ(take('c', pool({"x", "y", "z"}, 2)), (Names{"x", "y"}));
}

TEST_P(NamedSlotsTest, NoLeaseKeepsTheListOfItsWaiter) {
  EXPECT_EQ(take('a', pool({"x", "y"})), Names{"x"});
  const std::string share =
      store_->run({"HGET", helper_.shares(), sha1_hex(token('a').secret())}).text;
  const std::string owner = store_->run({"HGET", helper_.owner(), "record"}).text;
  EXPECT_NE(share.find("nightly"), std::string::npos);
  for (const std::string& text : {share, owner})
    EXPECT_EQ(text.find("only"), std::string::npos) << text;
}

}  // namespace
}  // namespace redlock
