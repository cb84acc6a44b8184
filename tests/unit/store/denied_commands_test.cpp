// Every command of the scripts refused in turn, at the embedded engine and at a real Redis: an
// error never looks like a free lock (PROTOCOL R11).
#include "../samples.hpp"
#include "called_commands.hpp"
#include "script_stores.hpp"

namespace redlock {
namespace {

using namespace testing;

/// How a lease holds the lock.
struct Way {
  std::string name;
  Mode mode;
  Slots slots{};
};

const std::array<Way, 3> ways{
    {{"alone", {}}, {"shared", {true, 0}}, {"in the only slot", {true, 1}, {0}}}};

bool may_be_together(const Way& one, const Way& other) {
  return one.mode.shared && other.mode.shared && (one.slots.empty() || other.slots.empty());
}

class DeniedCommandsTest : public ::testing::TestWithParam<ScriptStoreKind> {
 protected:
  AcquireVote acquire(LockServer& as, char digit, const Way& way) {
    return drive_.run(
        as.acquire({deploy(), token(digit), ttl(), some_owner(), way.mode}, drive_.soon()));
  }
  ExtendVote extend(LockServer& as, char digit, const Way& way, Duration length = 60s) {
    return drive_.run(as.extend({deploy(), token(digit), ttl(length), way.slots}, drive_.soon()));
  }
  HealVote heal(LockServer& as, char digit, const Way& way) {
    const HealRequest request{deploy(), token(digit), ttl(),
                              Fence(7), {},           Hold{way.mode.shared, way.slots}};
    return drive_.run(as.heal(request, drive_.soon()));
  }
  RaiseVote raise(LockServer& as, char digit) {
    return drive_.run(as.raise_fence({deploy(), token(digit), Fence(7), ttl()}, drive_.soon()));
  }

  /// Calls `check` with each command, once the limited client may not run it.
  template <class Check>
  void for_each_command(Check check) {
    const auto commands = called_commands();
    ASSERT_GE(commands.size(), 20U);
    for (const std::string& command : commands) {
      SCOPED_TRACE(command);
      store_->deny(command);
      check();
      if (HasFatalFailure()) return;
    }
  }
  template <class Check>
  static void for_each_conflict(Check check) {
    for (const Way& held : ways) {
      for (const Way& wanted : ways) {
        SCOPED_TRACE(held.name + ", and another wants it " + wanted.name);
        if (!may_be_together(held, wanted)) check(held, wanted);
      }
    }
  }

  Drive drive_;
  std::unique_ptr<ScriptStore> store_ = GetParam().make(drive_);
  LockServer& client_ = store_->client();
  LockServer& limited_ = store_->limited();
};

INSTANTIATE_TEST_SUITE_P(Store, DeniedCommandsTest, ::testing::ValuesIn(script_stores),
                         [](const auto& about) { return about.param.name; });

TEST_P(DeniedCommandsTest, NothingIsGrantedBesideAHolder) {
  for_each_command([&] {
    for_each_conflict([&](const Way& held, const Way& wanted) {
      store_->clear();
      ASSERT_TRUE(answers<Granted>(acquire(client_, 'a', held)));
      EXPECT_FALSE(answers<Granted>(acquire(limited_, 'b', wanted)));
      EXPECT_FALSE(answers<Extended>(extend(limited_, 'b', wanted)));
      EXPECT_FALSE(answers<Raised>(raise(limited_, 'b')));
      EXPECT_FALSE(answers<Healed>(heal(limited_, 'b', wanted)));
      EXPECT_TRUE(answers<Extended>(extend(client_, 'a', held)));
    });
  });
}

TEST_P(DeniedCommandsTest, WhatIsGrantedKeepsOthersOut) {
  for_each_command([&] {
    for_each_conflict([&](const Way& held, const Way& wanted) {
      store_->clear();
      if (!answers<Granted>(acquire(limited_, 'a', held))) return;
      EXPECT_FALSE(answers<Granted>(acquire(client_, 'b', wanted)));
      EXPECT_TRUE(answers<Extended>(extend(client_, 'a', held)));
    });
  });
}

TEST_P(DeniedCommandsTest, WhatIsExtendedLastsForAsLongAsItSays) {
  for_each_command([&] {
    for (const Way& way : ways) {
      SCOPED_TRACE(way.name);
      store_->clear();
      ASSERT_TRUE(answers<Granted>(acquire(client_, 'a', way)));
      if (!answers<Extended>(extend(limited_, 'a', way, 300s))) continue;
      Words keys{deploy().key()};
      const HelperKeys helper(deploy());
      if (way.mode.shared) keys.insert(keys.end(), {helper.readers(), helper.shares()});
      if (!way.slots.empty()) keys.push_back(helper.slots());
      for (const std::string& key : keys)
        EXPECT_GT(store_->run({"PTTL", key}).integer, 200'000) << key;
    }
  });
}

TEST_P(DeniedCommandsTest, ASlotThatAnotherHasIsNotExtended) {
  const Way& slot = ways[2];
  const HelperKeys helper(deploy());
  for_each_command([&] {
    store_->clear();
    const AcquireVote mine = acquire(client_, 'a', slot);
    ASSERT_TRUE(answers<Granted>(mine));
    const std::string other(40, 'f');
    store_->run({"HSET", helper.slots(), "0", other});
    store_->run({"ZADD", helper.readers(), "9000000000000", other});
    EXPECT_FALSE(answers<Extended>(extend(limited_, 'a', slot)));
  });
}

TEST_P(DeniedCommandsTest, WhatWasReleasedByHandDoesNotComeBack) {
  for_each_command([&] {
    for (const Way& way : ways) {
      store_->clear();
      ASSERT_TRUE(answers<Granted>(acquire(client_, 'a', way)));
      const ReleaseRequest by_hand{deploy(), token('a'), /*by_hand=*/true};
      ASSERT_TRUE(answers<Released>(drive_.run(client_.release(by_hand, drive_.soon()))));
      EXPECT_FALSE(answers<Healed>(heal(limited_, 'a', way))) << way.name;
    }
  });
}

}  // namespace
}  // namespace redlock
