#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/hold_keeper.hpp"
#include "engine/inspect.hpp"
#include "engine/waiter.hpp"
#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;

/// A hold, and clients that meet it (PROTOCOL F1-F3).
class Holds : public testing::Test {
 protected:
  static AcquireOrder order_of_hold(Duration length) {
    AcquireOrder wanted = order(length);
    wanted.owner.command.clear();
    wanted.owner.renewed_for = Duration::zero();
    wanted.owner.hold_for = length;
    return wanted;
  }
  void hold(Duration length = 24h) {
    lease = world.run(redlock::attempt(keeper.server_set, order_of_hold(length), keeper.interrupt))
                .value();
    ends = world.now() + length;
    world.settle_for(3s);
  }
  bool is_refused(Client& client) {
    const auto made = world.run(redlock::attempt(client.server_set, order(), client.interrupt));
    world.settle_for(1s);
    return !made.has_value();
  }
  void restart(std::size_t server) { world.store(server).lose_everything(); }
  bool has_hold(std::size_t server) {
    const auto lock = world.store(server).lock(resource());
    return lock && id_of(lock->value) == lease->id && lock->owner.hold_for;
  }
  std::size_t holds() {
    std::size_t number = 0;
    for (std::size_t server = 0; server < world.size(); ++server)
      number += has_hold(server) ? 1U : 0U;
    return number;
  }

  std::optional<FoundHold> found_by(Client& client) {
    votes = world.run(inspect(client.server_set, resource(), RunsTold::none));
    return find_hold(shown_by(votes));
  }
  bool lift(Client& client) {
    const auto found = found_by(client);
    const bool lifted = found && world.run(lift_hold(client.server_set, resource(), *found)).lifted;
    world.settle_for(1s);
    return lifted;
  }

  World world;
  Client& keeper = world.client(1);
  Client& first = world.client(2);
  Client& second = world.client(3);
  std::optional<Lease> lease;
  Instant ends;
  std::vector<InspectVote> votes;
};

TEST_F(Holds, ARefusedAttemptRestoresItWhereItWasLost) {
  hold();
  restart(1);
  EXPECT_TRUE(is_refused(first));
  EXPECT_EQ(holds(), 3U);
}

TEST_F(Holds, AnInspectionOfAllRestoresIt) {
  hold();
  restart(2);
  const std::vector<Resource> resources{resource()};
  world.run([&]() -> asio::awaitable<bool> {
    co_await inspect_all(first.server_set, resources, RunsTold::none,
                         [](const Resource&, const std::vector<InspectVote>&) {});
    co_return true;
  }());
  EXPECT_EQ(holds(), 3U);
}

TEST_F(Holds, AWaiterKeepsItThroughRollingRestarts) {
  hold(1h);
  SetWaiter waiter(first.server_set, {order()}, for_ever, first.interrupt);
  bool granted = false;
  world.start([&]() -> asio::awaitable<void> {
    for (;;) {
      auto result = co_await waiter.next();
      if (!result && !result.error().final) continue;
      granted = result.has_value();
      co_return;
    }
  });
  for (int round = 0; round < 20; ++round) {
    world.settle_for(1min);
    ASSERT_EQ(holds(), 3U) << "before restart " << round;
    restart(static_cast<std::size_t>(round) % 3);
  }
  world.settle_for(1min);
  EXPECT_EQ(holds(), 3U);
  EXPECT_FALSE(granted);
  for (std::size_t server = 0; server < 3; ++server)
    EXPECT_LT(*world.store(server).lock(resource())->expires, ends + 2s);
  world.settle_for(ends + 3s - world.now());
  EXPECT_TRUE(granted) << "it ends at its time";
}

TEST_F(Holds, AnAttemptUnderWayIsNotRestored) {
  const auto made =
      world.run(redlock::attempt(keeper.server_set, order_of_hold(24h), keeper.interrupt));
  ASSERT_TRUE(made);
  lease = made.value();
  restart(1);
  EXPECT_TRUE(is_refused(first));
  EXPECT_EQ(holds(), 2U) << "it may still be undone";
  world.settle_for(2s);
  EXPECT_TRUE(is_refused(first));
  EXPECT_EQ(holds(), 3U);
}

TEST_F(Holds, IsNotRestoredFromLessThanAQuorum) {
  hold();
  restart(0);
  restart(1);
  votes = world.run(inspect(first.server_set, resource(), RunsTold::none));
  const Instant t0 = world.now();
  world.run([&]() -> asio::awaitable<bool> {
    co_await keep_holds(first.server_set, resource(), shown_by(votes), t0, first.interrupt);
    co_return true;
  }());
  EXPECT_EQ(holds(), 1U);
}

TEST_F(Holds, ALiftedOneIsNotRestored) {
  hold();
  EXPECT_TRUE(lift(second));
  EXPECT_EQ(holds(), 0U);
  EXPECT_FALSE(is_refused(first));
}

TEST_F(Holds, AClientThatWasPausedDoesNotRestoreIt) {
  hold();
  restart(1);
  const auto before = found_by(first);
  ASSERT_TRUE(before);
  const std::vector<InspectVote> seen = votes;
  const Instant t0 = first.server_set.clock().now();
  second.server(2).fate_for[Question::release] = Fate{.silent = true};
  EXPECT_TRUE(lift(second)) << "a server missed it";
  restart(1);  // it forgets the lift
  world.settle_for(1min);
  world.run([&]() -> asio::awaitable<bool> {
    co_await keep_holds(first.server_set, resource(), shown_by(seen), t0, first.interrupt);
    co_return true;
  }());
  EXPECT_EQ(holds(), 1U);
}

TEST_F(Holds, ASignalEndsItsRestoration) {
  hold();
  restart(1);
  ASSERT_TRUE(found_by(first));
  const Instant t0 = first.server_set.clock().now();
  first.server(1).fate_for[Question::heal] = Fate{.silent = true};
  world.in(10ms, [this] { first.interrupt.raise(); });
  const Instant began = world.now();
  world.run([&]() -> asio::awaitable<bool> {
    co_await keep_holds(first.server_set, resource(), shown_by(votes), t0, first.interrupt);
    co_return true;
  }());
  EXPECT_LT(world.now() - began, 20ms);
}

TEST_F(Holds, ALateHealFindsThatItWasLifted) {
  hold();
  restart(1);
  ASSERT_TRUE(found_by(first));
  const std::vector<InspectVote> seen = votes;
  EXPECT_TRUE(lift(second));
  const Instant t0 = first.server_set.clock().now();
  world.run([&]() -> asio::awaitable<bool> {
    co_await keep_holds(first.server_set, resource(), shown_by(seen), t0, first.interrupt);
    co_return true;
  }());
  EXPECT_EQ(holds(), 0U);
}

/// However it ends: a client that is about to restore it where it was lost finds that out there.
TEST_F(Holds, ALateHealFindsThatItHasEndedAlsoWhereItWasMissing) {
  const std::vector<std::function<void()>> ends_of_hold{
      [this] {  // by its token
        HeldLease held(second.server_set, resource(), lease->token, lease->fence);
        world.run(held.release(/*by_hand=*/true));
      },
      [this] { world.run(break_lock(second.server_set, {resource()})); },
      [this] {  // its output failed
        world.run(HeldLease(keeper.server_set, *lease).release(/*by_hand=*/false));
      }};
  for (const auto& end_hold : ends_of_hold) {
    hold();
    restart(1);
    ASSERT_TRUE(found_by(first));
    const std::vector<InspectVote> seen = votes;
    end_hold();
    const Instant t0 = first.server_set.clock().now();
    world.run([&]() -> asio::awaitable<bool> {
      co_await keep_holds(first.server_set, resource(), shown_by(seen), t0, first.interrupt);
      co_return true;
    }());
    EXPECT_EQ(holds(), 0U);
    world.settle_for(1s);
  }
}

TEST_F(Holds, OneThatWasBrokenByForceIsLiftedWhereTheBreakWasMissed) {
  hold();
  for (const std::size_t server : {std::size_t{1}, std::size_t{2}})
    second.server(server).fate_for[Question::break_lock] = Fate{.silent = true};
  world.run(break_lock(second.server_set, {resource()}));
  EXPECT_EQ(holds(), 2U);
  EXPECT_TRUE(is_refused(first)) << "a quorum still shows it";
  EXPECT_EQ(holds(), 0U);
}

TEST_F(Holds, ABreakByForceDoesNotTouchTheLeaseThatCameAfterIt) {
  hold();
  restart(1);
  second.server(0).fate_for[Question::break_lock] = Fate{.silent = true};
  const auto votes_of_break = world.run(break_lock(second.server_set, {resource()}));
  const auto next = world.run(redlock::attempt(first.server_set, order(1min), first.interrupt));
  ASSERT_TRUE(next) << "two servers are free";
  BreakRequest again{resource()};
  again.hold = lease->id;
  again.tombstone_life = 1h;
  world.run([&]() -> asio::awaitable<bool> {
    (void)co_await second.server_set.server(1).break_lock(again, world.now() + 1s);
    co_return true;
  }());
  EXPECT_EQ(id_of(world.store(1).lock(resource())->value), next->id);
}

TEST_F(Holds, ALiftThatReachedFewServersIsCompletedByTheNextClient) {
  hold();
  for (const std::size_t server : {std::size_t{1}, std::size_t{2}})
    second.server(server).fate_for[Question::release] = Fate{.silent = true};
  EXPECT_FALSE(lift(second));
  EXPECT_EQ(holds(), 2U);
  EXPECT_TRUE(is_refused(first)) << "a quorum still shows it";
  EXPECT_EQ(holds(), 0U);
  EXPECT_FALSE(is_refused(first));
}

TEST_F(Holds, ALiftMayBeRepeated) {
  hold();
  for (const std::size_t server : {std::size_t{1}, std::size_t{2}})
    second.server(server).fate_for[Question::release] = Fate{.silent = true};
  EXPECT_FALSE(lift(second));
  second.server(1).fate_for.clear();
  EXPECT_TRUE(lift(second));
  EXPECT_EQ(holds(), 1U);
  EXPECT_FALSE(is_refused(first));
}

TEST_F(Holds, ALiftDoesNotTouchTheLeaseThatCameAfterIt) {
  hold();
  const auto found = found_by(second);
  EXPECT_TRUE(lift(second));
  const auto next = world.run(redlock::attempt(first.server_set, order(1min), first.interrupt));
  ASSERT_TRUE(next);
  world.run(lift_hold(second.server_set, resource(), *found));
  EXPECT_EQ(world.stores_in_use(resource()), 3U);
}

TEST_F(Holds, UsersKeepTheLockWhenItIsLifted) {
  hold();
  AcquireOrder wanted = order(9s);
  wanted.owner.renewed_for = 9s;
  wanted.parent_claim = ParentClaim{lease->id, lease->token, lease->fence};
  SetWaiter waiter(first.server_set, {wanted}, once, first.interrupt);
  const auto set = world.run(waiter.next()).value();
  set->keep();
  world.settle_for(1min);
  EXPECT_TRUE(lift(second));
  EXPECT_EQ(holds(), 0U);
  restart(0);
  world.settle_for(1min);
  EXPECT_FALSE(set->lost());
  EXPECT_TRUE(is_refused(second));
  EXPECT_EQ(holds(), 0U);
  world.run(set->release());
  world.settle_for(1s);
  EXPECT_FALSE(is_refused(second));
}

/// Each message takes its own time, so a lift overtakes a heal, or falls between two of its steps.
TEST_F(Holds, LiftedInTheMiddleOfItsRestorationItNeverReturns) {
  std::mt19937 random(4711);
  const auto up_to = [&random](int most) {
    return Milliseconds(random() % static_cast<unsigned>(most + 1));
  };
  std::size_t healed = 0;
  for (int round = 0; round < 500; ++round) {
    hold();
    restart(random() % 3);
    for (Client* const client : {&first, &second}) {
      for (std::size_t server = 0; server < 3; ++server)
        client->server(server).fate = Fate{.request = up_to(20), .reply = up_to(20)};
    }
    bool is_lifted = false;
    world.in(up_to(120), [&] {
      world.start([&]() -> asio::awaitable<void> {
        const auto asked = co_await inspect(second.server_set, resource(), RunsTold::none);
        const auto found = find_hold(shown_by(asked));
        const LiftResult result = co_await lift_hold(second.server_set, resource(), *found);
        is_lifted = result.lifted;
      });
    });
    (void)world.run(redlock::attempt(first.server_set, order(), first.interrupt));
    world.settle_for(20s);
    healed += std::ranges::any_of(first.servers, [](const AskedServer* server) {
      return !server->asked(Question::heal).empty();
    });
    EXPECT_TRUE(is_lifted) << round;
    EXPECT_EQ(holds(), 0U) << round;
    EXPECT_FALSE(is_refused(second)) << round;
    world.settle_for(20s);
    for (Client* const client : {&first, &second}) client->every_server({});
    for (AskedServer* const server : first.servers) server->forget();
  }
  EXPECT_GT(healed, 100U) << "else it was mostly lifted before";
}

TEST_F(Holds, AUserDoesNotRestoreOneThatSomeServerShowsAsLifted) {
  hold();
  AcquireOrder wanted = order(9s);
  wanted.owner.renewed_for = 9s;
  wanted.parent_claim = ParentClaim{lease->id, lease->token, lease->fence};
  SetWaiter waiter(first.server_set, {wanted}, once, first.interrupt);
  const auto set = world.run(waiter.next()).value();
  set->keep();
  second.server(0).fate_for[Question::release] = Fate{.silent = true};
  EXPECT_TRUE(lift(second));
  for (const std::size_t server : {std::size_t{2}, std::size_t{1}, std::size_t{2}}) {
    restart(server);
    world.settle_for(10s);
    EXPECT_TRUE(world.store(server).lock(resource()));
    EXPECT_FALSE(has_hold(server));
  }
  world.run(set->release());
  world.settle_for(1s);
  EXPECT_TRUE(world.store(1).is_free(resource()));
  EXPECT_TRUE(world.store(2).is_free(resource()));
}

TEST_F(Holds, OneUntilATimeEndsThenHoweverLongTheWait) {
  AcquireOrder wanted = order_of_hold(1h);
  wanted.until = keeper.server_set.clock().now() + 1h;
  world.settle_for(30min);
  const auto made = world.run(redlock::attempt(keeper.server_set, wanted, keeper.interrupt));
  ASSERT_TRUE(made);
  EXPECT_LE(made->ttl.length(), 30min);
  EXPECT_EQ(world.store(0).lock(resource())->owner.hold_for, made->ttl.length());
}

}  // namespace
}  // namespace redlock::unit
