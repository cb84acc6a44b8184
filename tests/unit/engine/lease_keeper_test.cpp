#include "engine/lease_keeper.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "../allocated.hpp"
#include "core/validity.hpp"
#include "engine/waiter.hpp"
#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;
using Event = std::variant<LeaseExtended, LeaseInTrouble, LeaseEnded>;

/// A lease of nine seconds, and its keeper.
class LeaseKeeperTest : public testing::Test {
 protected:
  LeaseKeeperTest() {
    lease = world.run(attempt(client.server_set, order(9s), client.interrupt)).value();
    keeper.emplace(client.server_set, *lease);
  }

  Event next() { return world.run(keeper->next()); }

  template <class Kind>
  Kind expect() {
    const Event event = next();
    EXPECT_TRUE(std::holds_alternative<Kind>(event)) << "event " << event.index();
    return std::holds_alternative<Kind>(event) ? std::get<Kind>(event) : Kind{};
  }

  /// Everything up to an event of this kind: how many in trouble, and how many of them first. Late
  /// answers extend the lease, and do not end the trouble.
  template <class Kind>
  Kind expect_after_trouble() {
    for (;;) {
      const Event event = next();
      const auto* late = std::get_if<LeaseExtended>(&event);
      if (late != nullptr && !late->after_trouble) continue;
      if (const auto* found = std::get_if<Kind>(&event)) return *found;
      const auto* trouble = std::get_if<LeaseInTrouble>(&event);
      if (trouble == nullptr) {
        ADD_FAILURE() << "event " << event.index();
        return {};
      }
      ++troubles;
      if (trouble->first) ++first_troubles;
      EXPECT_EQ(trouble->first, troubles == 1);
      EXPECT_FALSE(trouble->faults.empty());
    }
  }

  void down(bool is_down) {
    for (std::size_t i = 0; i < world.size(); ++i)
      is_down ? world.server(i).freeze() : world.server(i).thaw();
  }

  Instant granted_until(Instant t0) { return deadline(t0, ttl(9s)); }

  World world;
  Client& client = world.client();
  std::optional<Lease> lease;
  std::optional<LeaseKeeper> keeper;
  int troubles = 0;
  int first_troubles = 0;
};

std::vector<std::size_t> keys_of_each_store(World& world) {
  std::vector<std::size_t> keys;
  for (std::size_t i = 0; i < world.size(); ++i) keys.push_back(world.store(i).keys());
  return keys;
}

TEST_F(LeaseKeeperTest, ExtendsAtOnceWhenAServerEndsItsConnection) {
  world.in(1500ms, [this] { world.server(0).cut_all(); });
  expect<LeaseExtended>();
  EXPECT_GE(world.since_start(), 1500ms);
  EXPECT_LT(world.since_start(), 2s);
}

TEST_F(LeaseKeeperTest, AsksServersThatEndEveryConnectionOnceASecondAtMost) {
  for (Duration at = 100ms; at < 10s; at += 50ms)
    world.in(at, [this] { world.server(0).cut_all(); });
  std::size_t rounds = 0;
  while (world.since_start() < 9s) {
    (void)next();
    ++rounds;
  }
  EXPECT_GE(rounds, 5U);
  EXPECT_LE(rounds, 10U);
}

TEST(LeaseKeeperForADay, NothingGrows) {
  World world;
  Client& client = world.client();
  const Lease lease = world.run(attempt(client.server_set, order(30s), client.interrupt)).value();
  LeaseKeeper keeper(client.server_set, lease);
  std::size_t renewals = 0;
  const auto allocated_after = [&](Duration time) {
    for (const Duration end = world.since_start() + time; world.since_start() < end; ++renewals) {
      EXPECT_TRUE(std::holds_alternative<LeaseExtended>(world.run(keeper.next())));
      for (AskedServer* server : client.servers) server->forget();
    }
    world.collect_garbage();
    return allocated();
  };
  // Some hours until every buffer is as large as it will be.
  const std::size_t before = allocated_after(7h);
  const std::vector<std::size_t> keys = keys_of_each_store(world);
  const std::size_t renewals_before = renewals;
  const std::size_t after = allocated_after(18h);
  EXPECT_GE(renewals - renewals_before, static_cast<std::size_t>(18h / 10s));
  // One object a renewal would be twenty times as much.
  EXPECT_LE(after, before + 8192);
  EXPECT_EQ(keys_of_each_store(world), keys);
}

TEST_F(LeaseKeeperTest, DoesNotMindAWallClockThatJumps) {
  for (const Milliseconds offset : {Milliseconds(1h), Milliseconds(-1h), Milliseconds(0)}) {
    client.set_wall_offset(offset);
    const Instant before = world.now();
    const LeaseExtended extended = expect<LeaseExtended>();
    EXPECT_FALSE(extended.after_trouble);
    EXPECT_LE(world.now() - before, 3s);
    EXPECT_GT(extended.deadline, world.now() + 8s);
  }
}

TEST_F(LeaseKeeperTest, KeepsALeaseThatServersExtendLate) {
  client.every_server({.reply = server_timeout * 3 / 2});
  std::size_t extended = 0;
  bool in_trouble = false;
  while (world.since_start() < 60s) {
    const Event event = next();
    ASSERT_FALSE(std::holds_alternative<LeaseEnded>(event));
    if (const auto* late = std::get_if<LeaseExtended>(&event)) {
      ++extended;
      EXPECT_FALSE(late->after_trouble) << "they still answer late";
    } else {
      EXPECT_FALSE(std::exchange(in_trouble, true) && std::get<LeaseInTrouble>(event).first);
    }
    EXPECT_GT(keeper->deadline(), world.now());
  }
  EXPECT_GT(extended, 10U);
  client.every_server({});
  for (;;) {
    const Event event = next();
    const auto* again = std::get_if<LeaseExtended>(&event);
    if (again != nullptr && again->after_trouble) break;
    ASSERT_LT(world.since_start(), 90s);
  }
}

TEST_F(LeaseKeeperTest, EndsALeaseAtItsDeadlineThoughARoundIsUnderWay) {
  for (AskedServer* server : client.servers) server->extend_steps = 20s;
  const LeaseEnded ended = expect<LeaseEnded>();
  EXPECT_EQ(ended.state, LeaseState::expired);
  EXPECT_EQ(world.now(), lease->deadline);
}

TEST_F(LeaseKeeperTest, CountsALateAnswerFromItsQuestion) {
  client.every_server({.reply = server_timeout * 3 / 2});
  const Instant asked = world.now() + 3s;
  expect<LeaseInTrouble>();
  const LeaseExtended extended = expect<LeaseExtended>();
  EXPECT_EQ(extended.deadline, granted_until(asked));
  EXPECT_EQ(world.now(), asked + server_timeout * 3 / 2) << "though a newer round is under way";
}

TEST_F(LeaseKeeperTest, GoesOnWithTheRoundDuringWhichALateAnswerCame) {
  client.every_server({.reply = server_timeout * 3 / 2});
  expect<LeaseInTrouble>();
  client.every_server({.reply = server_timeout * 3 / 4});
  expect<LeaseExtended>();
  const std::size_t asked = client.server(0).asked(Question::extend).size();
  const Instant second = client.server(0).asked(Question::extend).back();
  const LeaseExtended extended = expect<LeaseExtended>();
  EXPECT_TRUE(extended.after_trouble);
  EXPECT_EQ(extended.deadline, granted_until(second));
  EXPECT_EQ(client.server(0).asked(Question::extend).size(), asked);
}

TEST_F(LeaseKeeperTest, DoesNotCountALateAnswerOfAMinority) {
  client.every_server({.silent = true});
  client.server(0).fate = {.reply = server_timeout * 3 / 2};
  EXPECT_EQ(expect_after_trouble<LeaseEnded>().state, LeaseState::expired);
  EXPECT_EQ(world.now(), lease->deadline);
}

TEST_F(LeaseKeeperTest, ExtendsEveryThirdOfTheTtl) {
  const Instant start = world.now();
  for (int round = 1; round <= 5; ++round) {
    const LeaseExtended extended = expect<LeaseExtended>();
    EXPECT_EQ(world.now(), start + round * 3s);
    EXPECT_EQ(extended.deadline, granted_until(world.now()));
    EXPECT_FALSE(extended.after_trouble);
  }
}

TEST_F(LeaseKeeperTest, CountsFromTheQuestionNotFromTheReply) {
  const Instant start = world.now();
  client.every_server({.request = 100ms, .reply = 200ms});
  EXPECT_EQ(expect<LeaseExtended>().deadline, granted_until(start + 3s));
  EXPECT_EQ(world.now(), start + 3300ms);
  EXPECT_EQ(expect<LeaseExtended>().deadline, granted_until(start + 6s));
}

TEST_F(LeaseKeeperTest, SurvivesAnOutageThatIsShorterThanTheLease) {
  world.in(1s, [this] { down(true); });
  world.in(8s, [this] { down(false); });
  const LeaseExtended extended = expect_after_trouble<LeaseExtended>();
  EXPECT_TRUE(extended.after_trouble);
  EXPECT_GT(troubles, 4);
  EXPECT_EQ(first_troubles, 1);
  EXPECT_LE(world.since_start(), 8s + 750ms);
  EXPECT_FALSE(expect<LeaseExtended>().after_trouble);
}

TEST_F(LeaseKeeperTest, ReportsEveryOutage) {
  for (int outage = 0; outage < 2; ++outage) {
    troubles = 0;
    world.in(1s, [this] { down(true); });
    world.in(5s, [this] { down(false); });
    expect_after_trouble<LeaseExtended>();
  }
  EXPECT_EQ(first_troubles, 2);
}

TEST_F(LeaseKeeperTest, ExpiresExactlyAtTheDeadlineWhenServersAreSilent) {
  down(true);
  EXPECT_EQ(expect_after_trouble<LeaseEnded>().state, LeaseState::expired);
  EXPECT_EQ(world.now(), lease->deadline);
  EXPECT_EQ(first_troubles, 1);
}

TEST_F(LeaseKeeperTest, ExpiresExactlyAtTheDeadlineWhenServersFail) {
  client.every_server(out_of_memory);
  EXPECT_EQ(expect_after_trouble<LeaseEnded>().state, LeaseState::expired);
  EXPECT_EQ(world.now(), lease->deadline);
}

TEST_F(LeaseKeeperTest, ExpiresExactlyAtTheDeadlineInTheMiddleOfARound) {
  // Whatever the phase of the rounds: one of these outages has a round under way when the lease
  // ends.
  for (Duration reply = 0ms; reply < 500ms; reply += 70ms) {
    World other;
    Client& slow = other.client();
    const auto granted = other.run(attempt(slow.server_set, order(9s), slow.interrupt));
    LeaseKeeper slow_keeper(slow.server_set, *granted);
    slow.every_server({.reply = reply, .answer = out_of_memory.answer});
    while (!std::holds_alternative<LeaseEnded>(other.run(slow_keeper.next()))) {
    }
    EXPECT_EQ(other.now(), granted->deadline) << reply.count();
  }
}

TEST_F(LeaseKeeperTest, ExpiresWhenTheConfirmationIsReadAfterTheDeadline) {
  client.every_server({.reply = 200ms});
  world.in(3100ms, [this] { client.stop_for(6s); });
  EXPECT_EQ(expect<LeaseEnded>().state, LeaseState::expired);
  EXPECT_GT(world.now(), lease->deadline);
}

TEST_F(LeaseKeeperTest, StaysExpired) {
  down(true);
  expect_after_trouble<LeaseEnded>();
  down(false);
  EXPECT_EQ(expect<LeaseEnded>().state, LeaseState::expired);
  world.settle_for(5s);
  EXPECT_EQ(expect<LeaseEnded>().state, LeaseState::expired);
}

TEST_F(LeaseKeeperTest, IsLostAtOnceWhenAQuorumHasNoKey) {
  for (const std::size_t i : {0U, 2U}) world.store(i).drop(resource());
  const LeaseEnded ended = expect<LeaseEnded>();
  EXPECT_EQ(ended.state, LeaseState::lost);
  ASSERT_TRUE(ended.not_ours);
  EXPECT_EQ(ended.not_ours->why, NotOurs::Why::gone);
  EXPECT_EQ(world.since_start(), 3s);
}

TEST_F(LeaseKeeperTest, IsNotResurrectedAfterALoss) {
  for (const std::size_t i : {0U, 2U}) world.store(i).drop(resource());
  expect<LeaseEnded>();
  EXPECT_TRUE(std::holds_alternative<LeaseEnded>(next()));
  world.settle_for(1s);
  EXPECT_LE(world.stores_in_use(resource()), 1);
}

TEST_F(LeaseKeeperTest, LivesOnWhenAMinorityHasNoKeyAndGivesItBack) {
  world.store(1).drop(resource());
  EXPECT_FALSE(expect<LeaseExtended>().after_trouble);
  // Every server lost it once: only because each got it back is there still a quorum.
  for (const std::size_t i : {0U, 2U, 1U}) {
    world.in(1s, [this, i] { world.store(i).drop(resource()); });
    EXPECT_FALSE(expect<LeaseExtended>().after_trouble);
  }
  world.settle_for(10ms);
  EXPECT_EQ(world.stores_in_use(resource()), 3);
}

TEST_F(LeaseKeeperTest, NoticesAtOnceThatItWasPausedBeyondTheDeadline) {
  world.settle_for(20s);
  EXPECT_EQ(expect<LeaseEnded>().state, LeaseState::expired);
  EXPECT_EQ(world.since_start(), 20s);
  EXPECT_TRUE(client.server(0).asked(Question::extend).empty());
}

TEST(Expiry, NeverComesBeforeTheDeadlineAtServersWhoseClocksAreOnePercentFast) {
  World world(3, {10'000, 10'000, 10'000});
  Client& holder = world.client(1);
  const auto lease = world.run(attempt(holder.server_set, order(10s), holder.interrupt));
  ASSERT_TRUE(lease);
  Client& next = world.client(2);
  Waiter waiter(next.server_set, order(10s),
                {.wait = std::nullopt, .unavailable_wait = 10s, .retry_delay = 1ms},
                next.interrupt);
  while (!world.run(waiter.next())) {
  }
  EXPECT_GE(world.now(), lease->deadline);
  EXPECT_LT(world.now(),
            lease->deadline + 110ms);  // the waiter takes the servers' milliseconds for its own
}

}  // namespace
}  // namespace redlock::unit
