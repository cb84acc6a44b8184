#include "engine/waiter.hpp"

#include "engine/inspect.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/decision.hpp"
#include "core/last_runs.hpp"
#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;
using Why = AcquireDecision;

struct SetEnding {
  std::shared_ptr<HeldSet> set;
  std::optional<WaitFailure> gave_up;
  std::vector<WaitFailure> waited;  ///< the attempts that failed on the way
};

asio::awaitable<SetEnding> set_to_the_end(Client& client, std::vector<AcquireOrder> orders,
                                          WaitPolicy policy) {
  SetWaiter waiter(client.server_set, std::move(orders), policy, client.interrupt);
  SetEnding ending;
  for (;;) {
    const auto set = co_await waiter.next();
    if (set) {
      ending.set = *set;
      co_return ending;
    }
    if (set.error().final) {
      ending.gave_up = set.error();
      co_return ending;
    }
    ending.waited.push_back(set.error());
  }
}

WaitPolicy at_most(Duration span) {
  WaitPolicy policy = for_ever;
  policy.wait = span;
  return policy;
}

class SetWaiterTest : public testing::Test {
 protected:
  std::vector<AcquireOrder> orders(Duration length = 3s) {
    std::vector<AcquireOrder> orders;
    for (const std::string_view key : {"a", "b"}) {
      orders.push_back(order(length));
      orders.back().resource = resource(key);
    }
    return orders;
  }

  SetEnding wait(const WaitPolicy& policy) {
    return world.run(set_to_the_end(client, orders(), policy));
  }

  void hold(std::string_view key, std::optional<Duration> remaining) {
    for (std::size_t i = 0; i < world.size(); ++i)
      world.store(i).hold_foreign(resource(key), "theirs", remaining);
  }
  void drop(std::string_view key) {
    for (std::size_t i = 0; i < world.size(); ++i) world.store(i).drop(resource(key));
  }
  bool is_ours(std::string_view key) {
    const auto lock = world.store(0).lock(resource(key));
    return lock && !lock->foreign;
  }

  World world;
  Client& client = world.client();
};

TEST_F(SetWaiterTest, TakesAllInTheGivenOrder) {
  const SetEnding ending = wait(once);
  ASSERT_TRUE(ending.set);
  ASSERT_EQ(ending.set->leases().size(), 2U);
  EXPECT_EQ(ending.set->leases()[0].resource, resource("a"));
  EXPECT_EQ(ending.set->leases()[1].resource, resource("b"));
  EXPECT_NE(ending.set->leases()[0].token, ending.set->leases()[1].token);
  EXPECT_EQ(ending.set->deadline(),
            std::min(ending.set->leases()[0].deadline, ending.set->leases()[1].deadline));
}

TEST_F(SetWaiterTest, KeepsNothingWhenOneIsBusy) {
  hold("b", std::nullopt);
  const SetEnding ending = wait(once);
  ASSERT_TRUE(ending.gave_up);
  EXPECT_EQ(ending.gave_up->failure.why, Why::busy);
  EXPECT_EQ(ending.gave_up->resource, resource("b"));
  EXPECT_EQ(world.stores_in_use(resource("a")), 0U);
}

TEST_F(SetWaiterTest, KeepsTheFirstAliveWhileItWaitsForTheSecond) {
  hold("b", 10s);  // three times the ttl of a
  bool ours_throughout = true;
  for (Duration at = 1s; at < 10s; at += 100ms) {
    world.in(at, [this, &ours_throughout] { ours_throughout = ours_throughout && is_ours("a"); });
  }
  const SetEnding ending = wait(for_ever);
  ASSERT_TRUE(ending.set);
  EXPECT_TRUE(ours_throughout);
  EXPECT_GE(world.since_start(), 10s);
  EXPECT_GT(ending.set->deadline(), world.now());
}

TEST_F(SetWaiterTest, HasOneWaitOverAll) {
  hold("a", 3s);
  hold("b", std::nullopt);
  const SetEnding ending = wait(at_most(4s));
  ASSERT_TRUE(ending.gave_up);
  EXPECT_EQ(ending.gave_up->resource, resource("b"));
  EXPECT_GE(world.since_start(), 4s);
  EXPECT_LT(world.since_start(), 5s);
  EXPECT_EQ(world.stores_in_use(resource("a")), 0U);
}

TEST_F(SetWaiterTest, BeginsAgainWhenOneIsLostMeanwhile) {
  hold("b", 4s);
  // So late that by the deadline it could still be ours when b is granted.
  world.in(2500ms, [this] { hold("a", 10s); });
  const SetEnding ending = wait(for_ever);
  ASSERT_TRUE(ending.set);
  EXPECT_FALSE(ending.set->lost());
  EXPECT_GE(world.since_start(), 12s);
  EXPECT_TRUE(is_ours("a"));
  EXPECT_TRUE(is_ours("b"));
  // What it held when it found out was given back: it waited for a again.
  EXPECT_TRUE(
      std::any_of(ending.waited.begin(), ending.waited.end(),
                  [](const WaitFailure& failure) { return failure.resource == resource("a"); }));
}

TEST_F(SetWaiterTest, GivesEverythingBackWhenItIsInterrupted) {
  hold("b", std::nullopt);
  world.in(2s, [this] { client.interrupt.raise(); });
  const SetEnding ending = wait(for_ever);
  ASSERT_TRUE(ending.gave_up);
  EXPECT_EQ(ending.gave_up->failure.why, Why::interrupted);
  world.settle_for(5s);
  EXPECT_EQ(world.stores_in_use(resource("a")), 0U);
}

TEST_F(SetWaiterTest, GivesEverythingBackWhenItsCallerGivesUp) {
  hold("b", std::nullopt);
  const auto give_up = [](Client& who, std::vector<AcquireOrder> what) -> asio::awaitable<bool> {
    SetWaiter waiter(who.server_set, std::move(what), for_ever, who.interrupt);
    for (int attempts = 0; attempts < 2; ++attempts) (void)co_await waiter.next();
    co_await waiter.give_up();
    co_return true;
  };
  EXPECT_TRUE(world.run(give_up(client, orders())));
  world.settle_for(5s);
  EXPECT_EQ(world.stores_in_use(resource("a")), 0U);
  EXPECT_TRUE(world.store(0).waiting(resource("b")).empty());
}

TEST_F(SetWaiterTest, GivesUpWhenTheHolderOfTheFirstIsAskedToStop) {
  hold("b", std::nullopt);
  world.in(2s, [this] {
    const auto lock = world.store(0).lock(resource("a"));
    world.start([this, id = id_of(lock->value)]() -> asio::awaitable<void> {
      const AskRequest request{resource("a"), id, std::nullopt, {"web1", "alice", "why"}};
      (void)co_await ask_to_stop(client.server_set, request);
    });
  });
  const SetEnding ending = wait(for_ever);
  ASSERT_TRUE(ending.gave_up);
  EXPECT_EQ(ending.gave_up->failure.why, Why::stopped);
  EXPECT_EQ(ending.gave_up->resource, resource("a"));
  ASSERT_TRUE(ending.gave_up->stop_request);
  EXPECT_EQ(ending.gave_up->stop_request->reason, "why");
  world.settle_for(5s);
  EXPECT_EQ(world.stores_in_use(resource("a")), 0U);
}

TEST_F(SetWaiterTest, NeverDeadlocksWithOthersThatSort) {
  std::vector<SetEnding> endings(4);
  for (std::size_t i = 0; i < endings.size(); ++i) {
    Client& other = world.client(i + 2);
    world.start([this, &ending = endings[i], &other]() -> asio::awaitable<void> {
      ending = co_await set_to_the_end(other, orders(), for_ever);
      if (ending.set) (void)co_await ending.set->release();
    });
  }
  world.settle_for(60s);
  for (const SetEnding& ending : endings) EXPECT_TRUE(ending.set);
  EXPECT_EQ(world.stores_in_use(resource("a")), 0U);
  EXPECT_EQ(world.stores_in_use(resource("b")), 0U);
}

class HeldSetTest : public SetWaiterTest {
 protected:
  HeldSetTest() { set = wait(once).set; }

  /// Keeps the set, and reads its events.
  void keep(const std::shared_ptr<HeldSet>& which) {
    which->keep();
    read(which);
  }

  void read(const std::shared_ptr<HeldSet>& which) {
    world.start([this, which]() -> asio::awaitable<void> {
      for (;;) {
        const auto event = co_await which->next();
        if (!event) co_return;
        note(*event);
      }
    });
  }

  /// Whether a server shows a success, which is enough for --once-per.
  bool closes_the_period(std::string_view key) {
    Client& other = world.client(77);
    const auto votes = world.run(inspect(other.server_set, resource(key)));
    return fresh_success(summarize(votes).runs_by_server, 20h).has_value();
  }

  std::shared_ptr<HeldSet> set;
  std::size_t extended = 0;
  std::vector<Resource> ended;
  std::vector<LeaseState> states;
  std::vector<std::string> stop_requests;

  void note(const SetEvent& event) {
    extended += std::holds_alternative<SetExtended>(event) ? 1 : 0;
    if (const auto* end = std::get_if<SetEnded>(&event)) {
      ended.push_back(end->resource);
      states.push_back(end->end.state);
    }
    if (const auto* asked = std::get_if<StopRequested>(&event))
      stop_requests.push_back(asked->request.reason);
  }

  /// Asks the holder of this lease, at these servers.
  void ask(const Lease& lease, const std::string& reason, std::vector<std::size_t> servers = {}) {
    Client& other = servers.empty() ? client : world.client_of(std::move(servers));
    (void)world.run(ask_to_stop(
        other.server_set, {lease.resource, lease.id, std::nullopt, {"web1", "alice", reason}}));
  }
};

TEST_F(HeldSetTest, ReportsTheFirstStopRequestOnce) {
  keep(set);
  ask(set->leases()[1], "first");
  world.settle_for(10s);
  ask(set->leases()[0], "second");
  world.settle_for(10s);
  EXPECT_EQ(stop_requests, std::vector<std::string>{"first"});
  EXPECT_FALSE(set->lost()) << "it is kept until the command has ended";
  EXPECT_TRUE(client.interrupt.raised());
}

TEST_F(HeldSetTest, ObeysARequestThatOneServerHasAndAnswersLate) {
  client.server(2).fate.reply = 300ms;  // long after the quorum
  keep(set);
  ask(set->leases()[0], "late", {2});
  world.settle_for(10s);
  EXPECT_EQ(stop_requests, std::vector<std::string>{"late"});
}

// Whatever a server believes of who is newer.
TEST_F(HeldSetTest, MakesRoomForANewerRunAlone) {
  const Place ours{7, "b"};
  for (const Place& other : {Place{6, "c"}, Place{7, "a"}, ours, Place{7, "c"}, Place{8, "a"}}) {
    for (const bool replaces : {true, false}) {
      stop_requests.clear();
      Lease lease = set->leases()[0];
      if (replaces) lease.place = ours;
      const auto held = std::make_shared<HeldSet>(client.server_set, client.interrupt);
      held->add(lease);
      keep(held);
      Owner owner = order().owner;
      owner.stop_request = StopRequest{"web1", "alice", "newer", other};
      world.store(1).change_owner(resource("a"), owner);
      EXPECT_EQ(world.run(held->extend()).decision, ExtendDecision::confirmed);
      world.settle_for(10ms);
      EXPECT_EQ(!stop_requests.empty(), replaces && ours < other)
          << other.ticket << other.waiter << replaces;
    }
  }
}

TEST_F(HeldSetTest, IgnoresARequestForAnotherLease) {
  keep(set);
  Lease other = set->leases()[0];
  other.id = LeaseId{"0123"};
  ask(other, "for another");
  world.settle_for(10s);
  EXPECT_TRUE(stop_requests.empty());
}

TEST_F(HeldSetTest, GivesTheRequestToAServerThatLostTheLease) {
  keep(set);
  const Lease& lease = set->leases()[0];
  ask(lease, "heal it", {0});
  world.store(1).lose_everything();
  world.settle_for(10s);
  const auto owner = world.store(1).lock(resource("a"))->owner;
  ASSERT_TRUE(owner.stop_request);
  EXPECT_EQ(owner.stop_request->reason, "heal it");
}

TEST_F(HeldSetTest, ReceivesARequestAtTwoServersThoughOneForgetsItAndTheThirdAnswersLate) {
  keep(set);
  ask(set->leases()[0], "why", {0, 1});
  world.store(1).lose_everything();
  client.server(2).fate.reply = 300ms;
  world.settle_for(1500ms);
  EXPECT_EQ(stop_requests, std::vector<std::string>{"why"});
  world.settle_for(3s);
  EXPECT_TRUE(world.store(1).lock(resource("a"))->owner.stop_request);
}

// To ask again is how `stop` looks.
TEST_F(HeldSetTest, ReceivesARequestThatAFailOverLostWhenItIsRepeated) {
  keep(set);
  std::vector<local::Keyspace::Entries> replicas;
  for (std::size_t i = 0; i < world.size(); ++i)
    replicas.push_back(world.server(i).keyspace().live());
  ask(set->leases()[0], "why");
  for (std::size_t i = 0; i < world.size(); ++i)
    world.server(i).keyspace().load(std::move(replicas[i]));
  world.settle_for(1500ms);
  EXPECT_TRUE(stop_requests.empty());
  ask(set->leases()[0], "again");
  world.settle_for(1500ms);
  EXPECT_EQ(stop_requests, std::vector<std::string>{"again"});
}

TEST_F(HeldSetTest, KeepsAllAliveUntilItIsReleased) {
  keep(set);
  world.settle_for(20s);
  EXPECT_TRUE(is_ours("a"));
  EXPECT_TRUE(is_ours("b"));
  EXPECT_GT(set->deadline(), world.now());
  EXPECT_EQ(world.run(set->release()).result.decision, ReleaseDecision::released);
  const std::size_t until_then = extended;
  world.settle_for(20s);
  EXPECT_EQ(extended, until_then);
  EXPECT_EQ(world.stores_in_use(resource("a")) + world.stores_in_use(resource("b")), 0U);
}

TEST_F(HeldSetTest, EndsAsSoonAsOneEnds) {
  keep(set);
  drop("b");
  for (std::size_t i = 0; i < world.size(); ++i)
    world.store(i).hold_foreign(resource("b"), "theirs", std::nullopt);
  world.settle_for(20s);
  EXPECT_EQ(ended, std::vector<Resource>{resource("b")});
  EXPECT_EQ(states, std::vector<LeaseState>{LeaseState::lost});
  EXPECT_TRUE(set->lost());
}

TEST_F(HeldSetTest, BeginsForALaterReaderWithTheStopRequestAndTheEnd) {
  set->keep();
  ask(set->leases()[1], "why");
  world.settle_for(10s);
  hold("a", std::nullopt);
  world.settle_for(5s);
  read(set);
  world.settle_for(10ms);
  EXPECT_EQ(stop_requests, std::vector<std::string>{"why"});
  EXPECT_EQ(ended, std::vector<Resource>{resource("a")});
}

TEST_F(HeldSetTest, EndsWithTheEarliestDeadline) {
  world.settle_for(1s);
  Lease later = set->leases()[0];
  later.deadline += 100s;
  set->add(later);
  EXPECT_EQ(set->deadline(), std::min(set->leases()[0].deadline, set->leases()[1].deadline));
}

TEST_F(HeldSetTest, ReleasesTheLastFirst) {
  std::vector<std::string> wanted{set->leases()[1].token.secret(), set->leases()[0].token.secret()};
  (void)world.run(set->release());
  EXPECT_EQ(client.server(0).tokens(Question::release), wanted);
}

TEST_F(HeldSetTest, IsReleasedWithinOneServerTimeoutBySilentServers) {
  std::vector<std::string> wanted{set->leases()[1].token.secret(), set->leases()[0].token.secret()};
  client.every_server({.silent = true});
  const Instant began = world.now();
  const SetReleaseResult worst = world.run(set->release());
  EXPECT_EQ(worst.result.decision, ReleaseDecision::unavailable);
  EXPECT_EQ(world.now() - began, server_timeout);
  EXPECT_EQ(client.server(0).tokens(Question::release), wanted);
}

TEST_F(HeldSetTest, ReportsTheWorstRelease) {
  hold("b", std::nullopt);
  const SetReleaseResult worst = world.run(set->release());
  EXPECT_EQ(worst.result.decision, ReleaseDecision::not_ours);
  EXPECT_EQ(worst.resource, resource("b"));
  EXPECT_EQ(world.stores_in_use(resource("a")), 0U);
}

/// A success of --once-per, as of now.
RunRecord success(Instant now) {
  RunRecord record{{}, now, /*success=*/true, 20h};
  record.run.ended = Duration::zero();
  record.run.result = "released";
  record.result_if_lost = "lost";
  return record;
}

ReleaseTerms of_success(Instant now) {
  ReleaseTerms terms;
  terms.run = success(now);
  return terms;
}

TEST_F(HeldSetTest, RecordsASuccessOnceAQuorumHasConfirmedEveryLease) {
  const auto result = world.run(set->release(of_success(world.now())));
  EXPECT_EQ(result.result.decision, ReleaseDecision::released);
  EXPECT_TRUE(result.confirmed);
  EXPECT_TRUE(result.recorded);
  EXPECT_TRUE(closes_the_period("a"));
  EXPECT_TRUE(closes_the_period("b"));
}

TEST_F(HeldSetTest, RecordsNoSuccessAnywhereIfOneIsLost) {
  // One server has not heard that the others lost it.
  for (const std::size_t i : {0U, 1U}) world.store(i).drop(resource("b"));
  const auto result = world.run(set->release(of_success(world.now())));
  EXPECT_EQ(result.result.decision, ReleaseDecision::not_ours);
  EXPECT_EQ(result.resource, resource("b"));
  EXPECT_FALSE(closes_the_period("a"));
  EXPECT_FALSE(closes_the_period("b"));
  EXPECT_EQ(world.stores_in_use(resource("a")) + world.stores_in_use(resource("b")), 0U);
}

TEST_F(HeldSetTest, IsAsReleasedIfItIsLostAfterItsSuccessWasConfirmed) {
  for (const std::size_t i : {0U, 1U})
    client.server(i).fate_for[Question::release] = {.request = 100ms};
  world.in(50ms, [this] { drop("b"); });
  const auto result = world.run(set->release(of_success(world.now())));
  EXPECT_EQ(result.result.decision, ReleaseDecision::not_ours);
  EXPECT_TRUE(result.confirmed);
  EXPECT_TRUE(closes_the_period("a"));
}

TEST_F(HeldSetTest, LeavesASuccessThatNoQuorumConfirmsToBeConfirmedLater) {
  for (const std::size_t i : {0U, 1U}) client.server(i).fate.silent = true;
  const Instant began = world.now();
  const auto result = world.run(set->release(of_success(world.now())));
  EXPECT_EQ(result.result.decision, ReleaseDecision::unavailable);
  EXPECT_LT(world.now() - began, 3 * server_timeout);
  EXPECT_FALSE(closes_the_period("a")) << "not even at the server that answers";
  for (const std::size_t i : {0U, 1U}) client.server(i).fate = {};
  const auto go_on = [this]() -> asio::awaitable<bool> {
    co_await release_unconfirmed(client.server_set, client.interrupt);
    co_return true;
  };
  world.run(go_on());
  EXPECT_TRUE(closes_the_period("a"));
  EXPECT_TRUE(closes_the_period("b"));
  EXPECT_EQ(world.stores_in_use(resource("a")) + world.stores_in_use(resource("b")), 0U);
}

TEST_F(HeldSetTest, ExtendsAllByHand) {
  world.settle_for(2s);
  EXPECT_EQ(world.run(set->extend()).decision, ExtendDecision::confirmed);
  world.settle_for(2s);
  EXPECT_TRUE(is_ours("a"));
  EXPECT_TRUE(is_ours("b"));
  hold("a", std::nullopt);
  EXPECT_EQ(world.run(set->extend()).decision, ExtendDecision::lost);
}

}  // namespace
}  // namespace redlock::unit
