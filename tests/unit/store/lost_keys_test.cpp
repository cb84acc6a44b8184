// Keys that another program deletes, at the embedded engine and at a real Redis.
#include "../samples.hpp"
#include "script_stores.hpp"
#include "support/digest.hpp"

namespace redlock {
namespace {

using namespace testing;

class LostKeysTest : public ::testing::TestWithParam<ScriptStoreKind> {
 protected:
  AcquireVote acquire(char digit, Mode mode, Slots slots = {}) {
    return drive_.run(
        server_.acquire({deploy(), token(digit), ttl(), some_owner(), mode, slots}, drive_.soon()));
  }
  Slots slots_of(const AcquireVote& vote) {
    const auto* granted = std::get_if<Granted>(&vote);
    EXPECT_NE(granted, nullptr) << vote.index();
    return granted != nullptr ? granted->slots : Slots();
  }
  ExtendVote extend(char digit, Slots slots = {}) {
    return drive_.run(server_.extend({deploy(), token(digit), ttl(60s), slots}, drive_.soon()));
  }
  HealVote heal(char digit, Slots slots = {}) {
    return drive_.run(server_.heal({deploy(), token(digit), ttl(), Fence(7), {}, Hold{true, slots}},
                                   drive_.soon()));
  }
  HealVote restore(char digit, bool shared) {
    const Provenance known{0ms, true, encode_owner(some_owner())};
    return drive_.run(server_.heal(
        {deploy(), token(digit), ttl(), Fence(7), known, Hold{shared, {}}}, drive_.soon()));
  }
  ReleaseVote release(char digit) {
    return drive_.run(server_.release({deploy(), token(digit)}, drive_.soon()));
  }
  InspectVote inspect() {
    return drive_.run(server_.inspect(deploy(), std::nullopt, drive_.soon()));
  }
  static std::string id_of(char digit) { return sha1_hex(token(digit).secret()); }

  /// A reader in a slot, as the scripts store it.
  void store_reader(const std::string& id, std::size_t slot) {
    const std::string number = std::to_string(slot);
    store_->run({"ZADD", helper_.readers(), "9000000000000", id});
    store_->run({"HSET", helper_.shares(), id, "1700000000000 1700000000000 1 " + number + " {}"});
    store_->run({"HSET", helper_.slots(), number, id});
    store_->run({"SET", deploy().key(), "redlock:shared", "PX", "900000000"});
  }

  Drive drive_;
  std::unique_ptr<ScriptStore> store_ = GetParam().make(drive_);
  LockServer& server_ = store_->client();
  HelperKeys helper_{deploy()};
};

INSTANTIATE_TEST_SUITE_P(Store, LostKeysTest, ::testing::ValuesIn(script_stores),
                         [](const auto& about) { return about.param.name; });

const Mode two_slots{true, 2};

// --- the table of slots ---

TEST_P(LostKeysTest, WithoutItsTableASlotIsStillTaken) {
  EXPECT_EQ(slots_of(acquire('a', two_slots)), Slots{0});
  store_->run({"DEL", helper_.slots()});
  EXPECT_EQ(slots_of(acquire('b', two_slots)), Slots{1});
  EXPECT_TRUE(answers<Held>(acquire('c', two_slots)));
  EXPECT_EQ(std::get<Taken>(inspect()).parties.free_slots, "00");
}

TEST_P(LostKeysTest, NoSlotIsShownAsFreeIfThatIsUnknown) {
  EXPECT_EQ(slots_of(acquire('a', two_slots)), Slots{0});
  store_->run({"DEL", helper_.slots()});
  store_->run({"DEL", helper_.shares()});
  store_->run({"SET", helper_.shares(), "no hash"});
  EXPECT_EQ(std::get<Taken>(inspect()).parties.free_slots.substr(0, 2), "00");
  EXPECT_TRUE(answers<Fault>(acquire('b', two_slots)));
  // Not that it is gone: that would end the command at once.
  EXPECT_TRUE(answers<Fault>(extend('a', {0})));
}

TEST_P(LostKeysTest, AnExtensionRestoresTheTableOfSlots) {
  EXPECT_EQ(slots_of(acquire('a', two_slots)), Slots{0});
  for (const Words& damage :
       {Words{"DEL", helper_.slots()}, Words{"HSET", helper_.slots(), "0", std::string(40, 'e')}}) {
    store_->run(damage);
    EXPECT_TRUE(answers<Extended>(extend('a', {0})));
    EXPECT_EQ(store_->run({"HGET", helper_.slots(), "0"}).text, id_of('a'));
    EXPECT_GT(store_->run({"PTTL", helper_.slots()}).integer, 40'000);
  }
}

// --- the owner record ---

TEST_P(LostKeysTest, ALostRecordIsRestoredAndItsLeaseIsNotShortened) {
  for (const bool shared : {false, true}) {
    store_->clear();
    acquire('a', Mode{shared});
    EXPECT_TRUE(answers<Extended>(extend('a')));
    store_->run({"DEL", shared ? helper_.shares() : helper_.owner()});
    const ExtendVote lost = extend('a');
    ASSERT_TRUE(answers<Extended>(lost));
    EXPECT_EQ(std::get<Extended>(lost).provenance.record, "");
    EXPECT_TRUE(answers<Healed>(restore('a', shared)));
    const ExtendVote back = extend('a');
    ASSERT_TRUE(answers<Extended>(back));
    EXPECT_EQ(decode_owner(std::get<Extended>(back).provenance.record)->host, some_owner().host);
    for (const std::string& key : {deploy().key(), shared ? helper_.shares() : helper_.owner()})
      EXPECT_GT(store_->run({"PTTL", key}).integer, 40'000) << key;
  }
}

TEST_P(LostKeysTest, ARecordThatIsThereIsNotReplaced) {
  for (const bool shared : {false, true}) {
    store_->clear();
    acquire('a', Mode{shared});
    const AskRequest stop{deploy(), LeaseId{id_of('a')}, std::nullopt, {"there", "you", "why"}};
    EXPECT_TRUE(answers<Taken>(drive_.run(server_.ask_holder(stop, drive_.soon()))));
    EXPECT_TRUE(answers<Healed>(restore('a', shared)));
    EXPECT_TRUE(std::get<Extended>(extend('a')).stop_request);
  }
}

TEST_P(LostKeysTest, WhoFindsAnotherInItsSlotHasLostIt) {
  EXPECT_EQ(slots_of(acquire('a', two_slots)), Slots{0});
  store_reader(id_of('b'), 0);
  const ExtendVote vote = extend('a', {0});
  ASSERT_TRUE(answers<NotOurs>(vote)) << vote.index();
  EXPECT_EQ(std::get<NotOurs>(vote).why, NotOurs::Why::held);
  EXPECT_TRUE(answers<NotOurs>(heal('a', {0})));
  EXPECT_TRUE(answers<Extended>(extend('b', {0})));
  EXPECT_TRUE(answers<Released>(release('a')));
  EXPECT_EQ(store_->run({"HGET", helper_.slots(), "0"}).text, id_of('b'));
}

TEST_P(LostKeysTest, SlotsAreTakenHoweverFarApartTheyAre) {
  store_reader(std::string(40, 'a'), 0);
  store_reader(std::string(40, 'b'), 2);
  store_reader(std::string(40, 'c'), 700);
  EXPECT_EQ(slots_of(acquire('1', {true, 1000})), Slots{1});
  EXPECT_EQ(slots_of(acquire('2', {true, 1000})), Slots{3});
  EXPECT_TRUE(answers<Held>(acquire('3', {true, 1000}, {700})));
  EXPECT_EQ(slots_of(acquire('3', {true, 1000}, {900})), Slots{900});
  const std::string free = std::get<Taken>(inspect()).parties.free_slots;
  EXPECT_EQ(free.size(), 901U);
  EXPECT_EQ(std::count(free.begin(), free.end(), '0'), 6);
}

TEST_P(LostKeysTest, AReaderThatIsInTwoSlotsOfTheTableHidesNone) {
  store_reader(std::string(40, 'a'), 0);
  store_reader(std::string(40, 'b'), 1);
  store_->run({"HSET", helper_.slots(), "1", std::string(40, 'a')});
  store_->run({"HSET", helper_.slots(), "2", std::string(40, 'b')});
  EXPECT_EQ(slots_of(acquire('1', {true, 9})), Slots{3});
}

TEST_P(LostKeysTest, MoreReadersThanAScriptReadsHideNoSlot) {
  for (int i = 0; i < 1000; ++i) {
    store_->run({"ZADD", helper_.readers(), "8000000000000", std::to_string(i)});
    store_->run(
        {"HSET", helper_.shares(), std::to_string(i), "1700000000000 1700000000000 1 -1 {}"});
  }
  store_reader(std::string(40, 'a'), 0);  // ends last
  EXPECT_EQ(slots_of(acquire('1', {true, 9})), Slots{1});
}

// --- the key of a shared lock ---

TEST_P(LostKeysTest, WhoSharesALockLosesItWithTheKey) {
  for (const Mode& mode : {Mode{true, 0}, two_slots}) {
    store_->clear();
    const Slots slots = slots_of(acquire('a', mode));
    store_->run({"DEL", deploy().key()});
    const ExtendVote vote = extend('a', slots);
    ASSERT_TRUE(answers<NotOurs>(vote)) << vote.index();
    EXPECT_EQ(std::get<NotOurs>(vote).why, NotOurs::Why::gone);
    EXPECT_TRUE(answers<NotRaised>(
        drive_.run(server_.raise_fence({deploy(), token('a'), Fence(7), ttl()}, drive_.soon()))));
    EXPECT_EQ(store_->run({"TYPE", deploy().key()}).text, "none");
  }
}

TEST_P(LostKeysTest, NoReaderHidesFromOthersThatTheKeyWasDeleted) {
  slots_of(acquire('a', {true, 0}));
  slots_of(acquire('b', {true, 0}));
  store_->run({"DEL", deploy().key()});
  for (const Mode& mode : {Mode{}, Mode{true, 0}, two_slots}) {
    const AcquireVote vote = acquire('c', mode);
    ASSERT_TRUE(answers<Held>(vote)) << vote.index();
    EXPECT_TRUE(std::get<Held>(vote).holder.shared);
  }
  EXPECT_TRUE(answers<Released>(release('b')));
  EXPECT_TRUE(answers<NotOurs>(extend('a')));
  EXPECT_TRUE(answers<Released>(release('a')));
  slots_of(acquire('c', {}));
}

TEST_P(LostKeysTest, AQuorumThatConfirmedAShareGivesTheKeyBack) {
  slots_of(acquire('a', {true, 0}));
  slots_of(acquire('b', {true, 0}));
  store_->run({"DEL", deploy().key()});
  EXPECT_TRUE(answers<Healed>(heal('a')));
  EXPECT_TRUE(answers<Extended>(extend('a')));
  EXPECT_TRUE(answers<Extended>(extend('b')));
}

}  // namespace
}  // namespace redlock
