#include "engine/waiter.hpp"

#include <gtest/gtest.h>

#include <set>

#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;
using Why = AcquireDecision;

struct Ending {
  std::optional<Lease> lease;
  std::optional<AttemptFailure> gave_up;
  std::vector<AttemptFailure> waited;  ///< the attempts that failed on the way
  Instant at;
};

asio::awaitable<Ending> to_the_end(World& world, Client& client, AcquireOrder wanted,
                                   WaitPolicy policy) {
  Waiter waiter(client.server_set, std::move(wanted), policy, client.interrupt);
  Ending ending;
  for (;;) {
    const auto lease = co_await waiter.next();
    ending.at = world.now();
    if (lease) {
      ending.lease = *lease;
      co_return ending;
    }
    if (lease.error().final) {
      ending.gave_up = lease.error().failure;
      co_return ending;
    }
    ending.waited.push_back(lease.error().failure);
  }
}

class WaiterTest : public testing::Test {
 protected:
  Ending wait(const WaitPolicy& policy) {
    return world.run(to_the_end(world, client, order(), policy));
  }

  void hold_all(std::optional<Duration> remaining) {
    for (std::size_t i = 0; i < world.size(); ++i)
      world.store(i).hold_foreign(resource(), "theirs", remaining);
  }
  void release_all() {
    for (std::size_t i = 0; i < world.size(); ++i) world.store(i).drop(resource());
  }
  void down(bool is_down) {
    for (std::size_t i = 0; i < world.size(); ++i)
      is_down ? world.server(i).freeze() : world.server(i).thaw();
  }

  World world;
  Client& client = world.client();
};

void expect_gave_up(const Ending& ending, Why why) {
  ASSERT_TRUE(ending.gave_up);
  EXPECT_EQ(ending.gave_up->why, why);
}

TEST_F(WaiterTest, TakesAFreeLockAtOnce) {
  const Ending ending = wait(once);
  EXPECT_TRUE(ending.lease);
  EXPECT_TRUE(ending.waited.empty());
}

TEST_F(WaiterTest, GivesUpAtOnceWithoutAWaitWhenItIsBusy) {
  hold_all(60s);
  const Ending ending = wait(once);
  expect_gave_up(ending, Why::busy);
  EXPECT_TRUE(ending.waited.empty());
  EXPECT_EQ(world.since_start(), 0s);
}

TEST_F(WaiterTest, TakesTheLockSoonAfterItWasReleased) {
  hold_all(std::nullopt);
  world.in(1s, [this] { release_all(); });
  const Ending ending = wait(for_ever);
  ASSERT_TRUE(ending.lease);
  EXPECT_GE(world.since_start(), 1s);
  EXPECT_LE(world.since_start(), 1s + 150ms);
  for (const AttemptFailure& failure : ending.waited) EXPECT_EQ(failure.why, Why::busy);
}

TEST_F(WaiterTest, JittersItsRetries) {
  hold_all(std::nullopt);
  wait({.wait = 3s, .unavailable_wait = 0s, .retry_delay = 100ms});
  const auto times = client.server(0).asked(Question::acquire);
  std::set<Duration> gaps;
  for (std::size_t i = 3; i < times.size(); ++i) {  // the second attempt is the one that queues
    gaps.insert(times[i - 1] - times[i - 2]);
    EXPECT_GE(times[i - 1] - times[i - 2], 50ms);
    EXPECT_LE(times[i - 1] - times[i - 2], 150ms);
  }
  EXPECT_GT(gaps.size(), 10);
}

TEST_F(WaiterTest, TriesALastTimeWhenTheWaitEnds) {
  hold_all(60s);
  const Ending ending = wait({.wait = 1s, .unavailable_wait = 10s, .retry_delay = 10s});
  expect_gave_up(ending, Why::busy);
  EXPECT_EQ(world.since_start(), 1s);
  EXPECT_EQ(ending.waited.size(), 2);  // one that finds it held, one that queues
}

TEST_F(WaiterTest, TakesInItsLastTryWhatWasReleasedBeforeTheWaitEnded) {
  hold_all(60s);
  world.in(990ms, [this] { release_all(); });
  EXPECT_TRUE(wait({.wait = 1s, .unavailable_wait = 10s, .retry_delay = 10s}).lease);
  EXPECT_EQ(world.since_start(), 1s);
}

TEST_F(WaiterTest, PollsWhenTheHoldersLeaseEndsIfThatIsSooner) {
  hold_all(300ms);
  EXPECT_TRUE(wait({.wait = std::nullopt, .unavailable_wait = 10s, .retry_delay = 10s}).lease);
  EXPECT_GE(world.since_start(), 300ms);
  EXPECT_LE(world.since_start(), 305ms);
}

TEST_F(WaiterTest, WaitsForEverByDefaultAndWhenTheWaitIsBeyondTheEndOfTime) {
  for (const std::optional<Duration> wait_for :
       {std::optional<Duration>(), std::optional<Duration>(Duration::max())}) {
    World forever;
    for (std::size_t i = 0; i < 3; ++i) forever.store(i).hold_foreign(resource(), "theirs", 20min);
    const WaitPolicy policy{.wait = wait_for, .unavailable_wait = 10s, .retry_delay = 60s};
    EXPECT_TRUE(forever.run(to_the_end(forever, forever.client(), order(), policy)).lease);
  }
}

TEST_F(WaiterTest, GivesUpAtOnceWithoutAWaitWhenThereIsNoQuorum) {
  down(true);
  const Ending ending = wait(once);
  expect_gave_up(ending, Why::unavailable);
  EXPECT_TRUE(ending.waited.empty());
  EXPECT_EQ(ending.gave_up->faults.size(), 2);  // enough to know
  EXPECT_EQ(world.since_start(), server_timeout);
}

TEST_F(WaiterTest, ToleratesAnOutageForItsTimeAndNeverReportsItAsBusy) {
  down(true);
  const Ending ending = wait(for_ever);
  expect_gave_up(ending, Why::unavailable);
  for (const AttemptFailure& failure : ending.waited) EXPECT_EQ(failure.why, Why::unavailable);
  EXPECT_GT(ending.waited.size(), 5);
  // From the end of the first attempt; the last one begins when the time is over.
  EXPECT_EQ(world.since_start(), server_timeout + 10s + server_timeout);
}

TEST_F(WaiterTest, ToleratesAnOutageNoLongerThanTheWait) {
  client.every_server(out_of_memory);
  expect_gave_up(wait({.wait = 2s, .unavailable_wait = 10s, .retry_delay = 100ms}),
                 Why::unavailable);
  EXPECT_EQ(world.since_start(), 2s);
}

TEST_F(WaiterTest, ToleratesAnOutageWithoutEnd) {
  down(true);
  world.in(60s, [this] { down(false); });
  EXPECT_TRUE(
      wait({.wait = std::nullopt, .unavailable_wait = Duration::max(), .retry_delay = 100ms})
          .lease);
  // Backs off to half a second and its jitter, beside what an attempt takes.
  EXPECT_GE(client.server(0).asked(Question::acquire).size(), 48);
  EXPECT_LE(client.server(0).asked(Question::acquire).size(), 75);
}

TEST_F(WaiterTest, GetsTheLockAfterAnOutageThatHealsInTime) {
  down(true);
  world.in(5s, [this] { down(false); });
  const Ending ending = wait(for_ever);
  ASSERT_TRUE(ending.lease);
  EXPECT_LE(world.since_start(), 5s + server_timeout + 750ms);
}

TEST_F(WaiterTest, MeasuresEveryOutageByItself) {
  // Eight seconds each, with a try at a busy lock in between: together longer than is borne.
  hold_all(14s);
  down(true);
  world.in(8s, [this] { down(false); });
  world.in(9500ms, [this] { down(true); });
  world.in(16s, [this] { down(false); });
  EXPECT_TRUE(wait(for_ever).lease);
}

TEST_F(WaiterTest, CountsAnOutageAsOneHoweverManyAttempts) {
  down(true);
  world.in(20s, [this] { down(false); });
  expect_gave_up(wait(for_ever), Why::unavailable);
}

TEST_F(WaiterTest, GivesUpAtOnceWhenWaitingCannotHelp) {
  for (const auto& [fate, why] :
       {std::pair{denied, Why::denied}, std::pair{misconfigured, Why::misconfigured}}) {
    client.every_server(fate);
    const Ending ending = wait(for_ever);
    expect_gave_up(ending, why);
    EXPECT_TRUE(ending.waited.empty());
  }
  Client& twice = world.client_of({0, 0, 1});
  expect_gave_up(world.run(to_the_end(world, twice, order(), for_ever)), Why::duplicate);
  EXPECT_EQ(world.since_start(), 0s);
}

TEST_F(WaiterTest, IsNotDelayedByAnInterrupt) {
  hold_all(std::nullopt);
  world.in(3s, [this] { client.interrupt.raise(); });
  const Ending ending = wait({.wait = std::nullopt, .unavailable_wait = 10s, .retry_delay = 60s});
  expect_gave_up(ending, Why::interrupted);
  EXPECT_EQ(world.since_start(), 3s);
  EXPECT_EQ(client.server(0).asked(Question::acquire).size(), 2);  // nothing was asked after it
}

TEST_F(WaiterTest, CallsAnEstablishedHolderBusyAlthoughAServerIsSilent) {
  Client& holder = world.client(2);
  ASSERT_TRUE(world.run(attempt(holder.server_set, order(), holder.interrupt)));
  world.settle_for(1100ms);
  const Instant began = world.now();
  world.store(0).drop(resource());
  client.server(1).fate.silent = true;
  const Ending ending = wait(once);
  expect_gave_up(ending, Why::busy);
  EXPECT_TRUE(ending.waited.empty());
  EXPECT_EQ(world.now() - began, server_timeout);
}

TEST_F(WaiterTest, TriesAgainWhenTheHolderMayBeAnAttemptThatFails) {
  Client& other = world.client(2);
  ASSERT_TRUE(world.run(attempt(other.server_set, order(), other.interrupt)));
  world.settle_for(10ms);
  world.store(0).drop(resource());
  client.server(1).fate.silent = true;
  world.in(600ms, [this] { release_all(); });
  EXPECT_TRUE(wait(once).lease);
}

TEST(Waiter, TreatsALockThatNoneCanHaveAsBusyWithinASecond) {
  for (const WaitPolicy& policy :
       {once, WaitPolicy{.wait = 500ms, .unavailable_wait = 10s, .retry_delay = 100ms}}) {
    World world(4);
    Client& client = world.client();
    for (const std::size_t i : {0U, 1U})
      world.store(i).hold_foreign(resource(), "theirs", std::nullopt);
    const Ending ending = world.run(to_the_end(world, client, order(), policy));
    expect_gave_up(ending, Why::busy);
    EXPECT_GT(ending.waited.size(), 3);
    EXPECT_LE(world.since_start(), 1s);
    EXPECT_GE(world.since_start(), 500ms);
  }
}

TEST(Waiter, TriesAgainAtOnceInASplitOnlyIfItGoesFirstAndOnlyOnce) {
  for (const auto& [theirs, goes_first] : {std::pair{"zzz", true}, std::pair{"!", false}}) {
    World world(2);
    Client& client = world.client();
    client.every_server({.reply = 10ms});
    world.store(0).hold_foreign(resource(), theirs, std::nullopt);
    world.run(to_the_end(world, client, order(), once));
    const auto times = client.server(0).asked(Question::acquire);
    ASSERT_GE(times.size(), 3);
    EXPECT_EQ(times[1] - times[0] == 10ms, goes_first);
    EXPECT_GE(times[2] - times[1], 20ms);
  }
}

/// Two of five servers do not see the first client, and a third forgets it.
class RestartedServer : public testing::Test {
 protected:
  static constexpr Duration guard = 20s;

  RestartedServer() {
    Client& first = world.client();
    for (const std::size_t i : {3U, 4U}) first.server(i).fate = Fate{.silent = true};
    lease = world.run(to_the_end(world, first, order(15s), once)).lease;
    world.server(2).crash(/*loses_everything=*/true);
    world.server(2).restart();
  }
  Ending wait(Client& second, const WaitPolicy& policy) {
    return world.run(to_the_end(world, second, order(1s), policy));
  }

  World world{5};
  std::optional<Lease> lease;
};

TEST_F(RestartedServer, LetsASecondHolderInWithoutAGuard) {
  ASSERT_TRUE(lease);
  const Ending ending = wait(world.client(2), once);
  ASSERT_TRUE(ending.lease);
  EXPECT_LT(ending.at, lease->deadline);  // two at a time
}

TEST_F(RestartedServer, HasNoVoteWithinTheGuard) {
  ASSERT_TRUE(lease);
  const Ending ending = wait(world.guarded_client(guard), once);
  expect_gave_up(ending, Why::guarded);
  ASSERT_EQ(ending.gave_up->restarted.size(), 1U);
  EXPECT_EQ(ending.gave_up->restarted[0].server, world.client(3).server(2).name());
  world.settle_for(5s);
  for (const std::size_t i : {2U, 3U, 4U}) EXPECT_TRUE(world.store(i).is_free(resource())) << i;
}

TEST_F(RestartedServer, IsWaitedForButNeverLongerThanItTakes) {
  ASSERT_TRUE(lease);
  Client& second = world.guarded_client(guard);
  const Instant restarted = world.now();
  const Ending ending = wait(second, for_ever);
  ASSERT_TRUE(ending.lease);
  EXPECT_GE(ending.at, lease->deadline);
  EXPECT_LE(ending.at, restarted + guard + 2s);
  for (const AttemptFailure& failure : ending.waited)
    EXPECT_TRUE(failure.why == Why::guarded || failure.why == Why::busy);
}

TEST_F(RestartedServer, EndsAWaitAsUnavailableNotAsBusy) {
  Client& second = world.guarded_client(guard);
  expect_gave_up(wait(second, WaitPolicy{.wait = 2s, .unavailable_wait = 0s, .retry_delay = 100ms}),
                 Why::guarded);
}

/// With a server timeout of five seconds and a dead server, an attempt takes as long; one that
/// began two seconds before us fails, too.
TEST(LongServerTimeout, AnAttemptOfAnotherIsNotTakenForALease) {
  World world;
  Client& other = world.client(1, 5s);
  Client& client = world.client(2, 5s);
  for (Client* each : {&other, &client}) each->server(2).fate.silent = true;
  other.server(1).fate.request = 3s;  // by then we have it
  world.start([&other]() -> asio::awaitable<void> {
    (void)co_await attempt(other.server_set, order(60s), other.interrupt);
  });
  world.settle_for(2s);
  other.server(1).fate.request = 0s;
  const Ending ending = world.run(to_the_end(world, client, order(60s), once));
  EXPECT_TRUE(ending.lease);
  EXPECT_FALSE(ending.waited.empty()) << "nothing was in the way, so nothing was shown";
}

}  // namespace
}  // namespace redlock::unit
