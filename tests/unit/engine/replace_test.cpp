// Runs with --replace: the newest stops the running one and supersedes those that wait (PROTOCOL
// Q11). A run here keeps its lease, stops when it is asked to, and only then releases.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>

#include "engine/held_set.hpp"
#include "engine/waiter.hpp"
#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;

constexpr Duration run_ttl = 3s;

/// Until a holder has heard a request, with its next renewal.
constexpr Duration hearing = run_ttl / 3 + server_timeout;

/// From the stop signal until all of the command is dead.
constexpr Duration stopping = 300ms;

/// All runs of a test, numbered in the order in which they came.
class Runs {
 public:
  explicit Runs(std::size_t servers) : world(servers) {}

  struct Run {
    Client& client;
    AcquireOrder wanted;
    std::shared_ptr<HeldSet> leases;
    std::optional<StopRequest> stopped;
    std::optional<AcquireDecision> gave_up;
    bool runs = false;
  };

  /// One that comes now. Without `replaces` it only supersedes others, or not even that.
  Run& comes(bool replaces = true, bool supersedes = true) {
    AcquireOrder wanted = order(run_ttl);
    wanted.owner.command = std::to_string(all.size());
    if (supersedes) {
      wanted.supersession = std::make_shared<Supersession>();
      wanted.supersession->replaces = replaces;
    }
    Run& run = all.emplace_back(Run{world.client(1000 + all.size()), wanted, {}, {}, {}});
    world.start([this, &run, number = all.size() - 1] { return live(run, number); });
    return run;
  }

  /// One that comes now, and is paused once it has its ticket, before it shows it to a server.
  Run& comes_and_is_paused() {
    Run& run = comes();
    for (AskedServer* server : run.client.servers) server->fate.reply = 10ms;
    world.settle_for(5ms);
    run.client.stop();
    world.settle_for(20ms);
    for (AskedServer* server : run.client.servers) server->fate = {};
    return run;
  }

  /// The numbers of those that run now; never more than one.
  [[nodiscard]] std::vector<std::size_t> running() const {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].runs) numbers.push_back(i);
    }
    return numbers;
  }

  [[nodiscard]] Place place(std::size_t number) const {
    return all[number].wanted.supersession->place.value_or(Place());
  }

  World world;
  std::deque<Run> all;
  std::vector<std::size_t> started;

 private:
  asio::awaitable<void> live(Run& run, std::size_t number) {
    std::vector<AcquireOrder> orders;
    orders.push_back(run.wanted);
    WaitPolicy policy = for_ever;
    policy.unavailable_wait = 1h;
    SetWaiter waiter(run.client.server_set, std::move(orders), policy, run.client.interrupt);
    while (!run.leases) {
      const auto set = co_await waiter.next();
      if (set) run.leases = *set;
      if (!set && set.error().final) {
        run.gave_up = set.error().failure.why;
        co_return;
      }
    }
    EXPECT_TRUE(running().empty()) << number << " runs beside another";
    run.runs = true;
    started.push_back(number);
    run.leases->keep();
    while (!run.stopped) {
      const auto event = co_await run.leases->next();
      if (const auto* asked = std::get_if<StopRequested>(&*event)) run.stopped = asked->request;
    }
    co_await sleep_until(run.client.process, run.client.process.now() + stopping);
    run.runs = false;
    (void)co_await run.leases->release();
  }
};

TEST(Replace, TheNewestStopsTheRunningOneAndStartsWhenThatIsDead) {
  for (const std::size_t servers : {1U, 3U, 4U, 5U}) {
    Runs runs(servers);
    runs.comes();
    runs.world.settle_for(1500ms);
    runs.comes();
    runs.world.settle_for(hearing + stopping + 100ms);
    EXPECT_EQ(runs.started, (std::vector<std::size_t>{0, 1})) << servers;
    EXPECT_EQ(runs.running(), std::vector<std::size_t>{1});
    ASSERT_TRUE(runs.all[0].stopped);
    EXPECT_EQ(runs.all[0].stopped->newer, runs.place(1));
    EXPECT_FALSE(runs.all[1].stopped);
  }
}

TEST(Replace, ARunWithoutItIsLeftAlone) {
  for (const bool supersedes : {false, true}) {
    Runs runs(3);
    runs.comes(/*replaces=*/false, supersedes);
    runs.world.settle_for(100ms);
    runs.comes();
    runs.world.settle_for(100ms);
    runs.comes(/*replaces=*/false, /*supersedes=*/true);
    runs.world.settle_for(30s);
    EXPECT_EQ(runs.running(), std::vector<std::size_t>{0});
    EXPECT_FALSE(runs.world.store(0).lock(resource())->owner.stop_request);
    EXPECT_EQ(runs.all[1].gave_up, AcquireDecision::superseded) << "the last one is newer";
  }
}

TEST(Replace, OneThatOnlySupersedesOrWaitsStopsNone) {
  Runs runs(3);
  runs.comes();
  runs.world.settle_for(100ms);
  runs.comes(/*replaces=*/false, /*supersedes=*/true);
  runs.comes(/*replaces=*/false, /*supersedes=*/false);
  runs.world.settle_for(30s);
  EXPECT_EQ(runs.running(), std::vector<std::size_t>{0});
}

TEST(Replace, OneThatDrewItsTicketBeforeTheRunningOneDoesNotStopIt) {
  Runs runs(3);
  Runs::Run& first = runs.comes_and_is_paused();
  runs.comes();
  runs.world.settle_for(100ms);
  ASSERT_EQ(runs.running(), std::vector<std::size_t>{1});
  first.client.go_on();
  runs.world.settle_for(30s);
  EXPECT_EQ(runs.running(), std::vector<std::size_t>{1});
  EXPECT_LT(runs.place(0), runs.place(1));
  EXPECT_EQ(first.gave_up, AcquireDecision::superseded);
}

// A server that lost its data gets the lease back, and not who came last.
TEST(Replace, OneThatCameBeforeTheRunningOneDoesNotStopItWhereAServerForgotThat) {
  Runs runs(3);
  Runs::Run& first = runs.comes_and_is_paused();
  runs.comes();
  runs.world.settle_for(100ms);
  runs.world.store(0).lose_everything();
  runs.world.settle_for(run_ttl);
  ASSERT_TRUE(runs.world.store(0).lock(resource())->owner.place) << "it was healed";
  for (std::size_t i = 0; i < 3; ++i) first.client.server(i).fate = {.silent = i != 0};
  first.client.go_on();
  runs.world.settle_for(30s);
  EXPECT_EQ(runs.running(), std::vector<std::size_t>{1});
  EXPECT_FALSE(runs.world.store(0).lock(resource())->owner.stop_request);
  EXPECT_FALSE(first.gave_up) << "no quorum told it of the newer one";
}

TEST(Replace, ARequestAtTwoServersIsReceivedThoughOneForgetsItAndTheThirdAnswersLate) {
  Runs runs(3);
  Runs::Run& running = runs.comes();
  runs.world.settle_for(1200ms);
  Runs::Run& newer = runs.comes();
  newer.client.server(2).fate.silent = true;
  runs.world.settle_for(100ms);
  for (const std::size_t i : {0U, 1U})
    ASSERT_TRUE(runs.world.store(i).lock(resource())->owner.stop_request);
  runs.world.store(1).lose_everything();
  running.client.server(2).fate.reply = 300ms;
  runs.world.settle_for(hearing + stopping + 1s);
  EXPECT_TRUE(running.stopped);
  newer.client.server(2).fate = {};
  runs.world.settle_for(10s);
  EXPECT_EQ(runs.running(), std::vector<std::size_t>{1});
}

TEST(Replace, ARequestThatAFailOverLostIsMadeAgain) {
  Runs runs(1);
  runs.comes();
  runs.world.settle_for(1200ms);
  // What the next master has.
  const local::Keyspace::Entries replica = runs.world.server(0).keyspace().live();
  runs.comes();
  runs.world.settle_for(100ms);
  ASSERT_TRUE(runs.world.store(0).lock(resource())->owner.stop_request);
  runs.world.server(0).keyspace().load(replica);
  ASSERT_FALSE(runs.world.store(0).lock(resource())->owner.stop_request);
  runs.world.settle_for(20s);  // the longest time between two polls, and more
  EXPECT_EQ(runs.running(), std::vector<std::size_t>{1});
}

TEST(Replace, OfTenAtOnceThatEachMissAnotherServerTheLastTicketRunsLast) {
  for (const std::size_t servers : {3U, 5U}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      Runs runs(servers);
      runs.comes();
      runs.world.settle_for(100ms);
      std::mt19937_64 random(seed);  // NOLINT: reproducible on purpose
      for (std::size_t i = 0; i < 10; ++i) {
        Client& client = runs.comes().client;
        for (AskedServer* server : client.servers) {
          server->fate = {.request = std::chrono::microseconds(random() % 20'000),
                          .reply = std::chrono::microseconds(random() % 20'000)};
        }
        client.server(random() % servers).fate.silent = true;
      }
      runs.world.settle_for(1min);
      std::size_t newest = 0;
      for (std::size_t i = 1; i < runs.all.size(); ++i) {
        if (runs.place(newest) < runs.place(i)) newest = i;
      }
      EXPECT_EQ(runs.running(), std::vector<std::size_t>{newest}) << servers << " " << seed;
      for (std::size_t i = 0; i < runs.all.size(); ++i) {
        const bool has_run = std::ranges::find(runs.started, i) != runs.started.end();
        EXPECT_EQ(runs.all[i].gave_up == AcquireDecision::superseded, !has_run) << i;
        EXPECT_EQ(runs.all[i].stopped.has_value(), has_run && i != newest) << i;
      }
    }
  }
}

}  // namespace
}  // namespace redlock::unit
