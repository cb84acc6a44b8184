#include <gtest/gtest.h>

#include <algorithm>

#include "engine/hold_keeper.hpp"
#include "engine/inspect.hpp"
#include "engine/waiter.hpp"
#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;

/// A hold of one device of a pool, and clients that meet it (PROTOCOL F4).
class SlotHolds : public testing::Test {
 protected:
  static Mode pool(std::vector<std::string> names) {
    const std::size_t slots = names.size();
    return {true, slots, 1, std::move(names)};
  }
  static AcquireOrder order_of(const Mode& mode, Duration length = 30s) {
    AcquireOrder wanted = order(length);
    wanted.mode = mode;
    wanted.owner.slots = 3;
    return wanted;
  }
  static AcquireOrder order_of_hold(Duration length) {
    AcquireOrder wanted = order_of(pool({"b"}), length);
    wanted.owner.renewed_for = Duration::zero();
    wanted.owner.hold_for = length;
    return wanted;
  }
  std::optional<Lease> attempt(Client& client, const AcquireOrder& wanted) {
    auto made = world.run(redlock::attempt(client.server_set, wanted, client.interrupt));
    world.settle_for(1s);
    return made ? std::optional(made.value()) : std::nullopt;
  }
  void hold(Duration length = 24h) {
    lease = attempt(keeper, order_of_hold(length));
    ASSERT_TRUE(lease);
    ends = world.now() - 1s + length;
    world.settle_for(2s);
  }
  void restart(std::size_t server) { world.store(server).lose_everything(); }

  std::vector<InspectVote> inspected() {
    return world.run(inspect(observer.server_set, resource(), RunsTold::none));
  }
  /// The share that a server shows in the device.
  std::optional<Share> device_at(std::size_t server) {
    const std::vector<InspectVote> votes = inspected();
    const auto* taken = std::get_if<Taken>(&votes.at(server));
    if (taken == nullptr) return std::nullopt;
    for (const Share& share : taken->parties.first_shares)
      if (share.slot_name == "b") return share;
    return std::nullopt;
  }
  std::size_t holds() {
    std::size_t number = 0;
    for (std::size_t server = 0; server < world.size(); ++server) {
      const auto share = device_at(server);
      number += share && share->holder.hold && share->holder.id == lease->id ? 1U : 0U;
    }
    return number;
  }
  void keep(Client& client, const std::vector<InspectVote>& seen, Instant t0) {
    world.run([&]() -> asio::awaitable<bool> {
      co_await keep_holds(client.server_set, resource(), shown_by(seen), t0, client.interrupt);
      co_return true;
    }());
  }
  bool lift(Client& client) {
    const std::vector<FoundHold> found = find_holds(shown_by(inspected()));
    if (found.size() != 1) return false;
    const bool lifted = world.run(lift_hold(client.server_set, resource(), found.front())).lifted;
    world.settle_for(1s);
    return lifted;
  }

  World world;
  Client& keeper = world.client(1);
  Client& first = world.client(2);
  Client& second = world.client(3);
  Client& observer = world.client(4);
  std::optional<Lease> lease;
  Instant ends;
};

TEST_F(SlotHolds, EveryRefusedAttemptRestoresThem) {
  hold();
  const auto other = attempt(second, order_of(pool({"a"}), 10min));
  ASSERT_TRUE(other);
  for (const Mode& wanted : {pool({"b"}), pool({"a"}), pool({"b", "a"}), Mode{}}) {
    restart(1);
    EXPECT_FALSE(attempt(first, order_of(wanted)));
    EXPECT_EQ(holds(), 3U);
  }
}

TEST_F(SlotHolds, OneByNumberIsRestoredByItsNumber) {
  AcquireOrder wanted = order_of_hold(24h);
  wanted.mode = {true, 1, 1, {"2"}};
  lease = attempt(keeper, wanted);
  ASSERT_TRUE(lease);
  world.settle_for(2s);
  restart(1);
  EXPECT_FALSE(attempt(first, order_of({true, 1, 1, {"2"}})));
  const std::vector<InspectVote> votes = inspected();
  const Share& restored = std::get<Taken>(votes.at(1)).parties.first_shares.at(0);
  EXPECT_EQ(restored.slot, 2U);
  EXPECT_TRUE(restored.holder.hold);
}

TEST_F(SlotHolds, AnInspectionOfAllRestoresThem) {
  hold();
  restart(2);
  world.run([&]() -> asio::awaitable<bool> {
    const std::vector<Resource> resources{resource()};
    co_await inspect_all(first.server_set, resources, RunsTold::none,
                         [](const Resource&, const std::vector<InspectVote>&) {});
    co_return true;
  }());
  EXPECT_EQ(holds(), 3U);
}

TEST_F(SlotHolds, AGrantOfAnotherSlotRestoresNone) {
  hold();
  restart(1);
  EXPECT_TRUE(attempt(first, order_of(pool({"a"}))));
  EXPECT_EQ(holds(), 2U);
}

TEST_F(SlotHolds, AWaiterKeepsThemThroughRollingRestarts) {
  hold(1h);
  SetWaiter waiter(first.server_set, {order_of(pool({"b"}))}, for_ever, first.interrupt);
  bool granted = false;
  world.start([&]() -> asio::awaitable<void> {
    for (;;) {
      auto result = co_await waiter.next();
      if (!result && !result.error().final) continue;
      granted = result.has_value();
      co_return;
    }
  });
  for (int round = 0; round < 12; ++round) {
    world.settle_for(1min);
    ASSERT_EQ(holds(), 3U) << "before restart " << round;
    EXPECT_TRUE(attempt(second, order_of(pool({"a", "c"}), 5s))) << "the others are free";
    restart(static_cast<std::size_t>(round) % 3);
  }
  world.settle_for(1min);
  EXPECT_EQ(holds(), 3U);
  EXPECT_FALSE(granted);
  world.settle_for(ends + 3s - world.now());
  EXPECT_TRUE(granted) << "it ends at its time";
}

TEST_F(SlotHolds, AnAttemptUnderWayIsNotRestored) {
  auto made = world.run(redlock::attempt(keeper.server_set, order_of_hold(24h), keeper.interrupt));
  ASSERT_TRUE(made);
  lease = made.value();
  restart(1);
  EXPECT_FALSE(attempt(first, order_of(pool({"b"}))));
  EXPECT_EQ(holds(), 2U) << "it may still be undone";
  world.settle_for(2s);
  EXPECT_FALSE(attempt(first, order_of(pool({"b"}))));
  EXPECT_EQ(holds(), 3U);
}

TEST_F(SlotHolds, AreNotRestoredFromLessThanAQuorum) {
  hold();
  restart(0);
  restart(1);
  keep(first, inspected(), first.server_set.clock().now());
  EXPECT_EQ(holds(), 1U);
}

TEST_F(SlotHolds, ALiftedOneIsNotRestoredByAClientThatSawItBefore) {
  hold();
  restart(1);
  const std::vector<InspectVote> seen = inspected();
  EXPECT_TRUE(lift(second));
  EXPECT_TRUE(attempt(second, order_of(pool({"b"}), 5s)));
  keep(first, seen, first.server_set.clock().now());
  EXPECT_EQ(holds(), 0U);
}

/// Even where the tombstone is lost: another has the device by then.
TEST_F(SlotHolds, ALateHealTakesNoDeviceOfALeaseThatFollowed) {
  hold();
  restart(1);
  const std::vector<InspectVote> seen = inspected();
  EXPECT_TRUE(lift(second));
  restart(0);
  restart(1);
  const auto next = attempt(second, order_of(pool({"b"}), 10min));
  ASSERT_TRUE(next);
  keep(first, seen, first.server_set.clock().now());
  EXPECT_EQ(holds(), 0U);
  for (std::size_t server = 0; server < 3; ++server)
    EXPECT_EQ(device_at(server).value().holder.id, next->id) << server;
  EXPECT_FALSE(attempt(first, order_of(pool({"b"}))));
}

TEST_F(SlotHolds, OneThatWasBrokenByForceDoesNotReturn) {
  hold();
  const auto other = attempt(second, order_of(pool({"a"}), 10min));
  restart(1);
  const std::vector<InspectVote> seen = inspected();
  BreakRequest request{resource()};
  request.slot = "b";
  world.run(break_lock(second.server_set, request));
  keep(first, seen, first.server_set.clock().now());
  EXPECT_EQ(holds(), 0U);
  const std::vector<InspectVote> votes = inspected();
  EXPECT_EQ(std::get<Taken>(votes.at(0)).parties.shares, 1U) << "the other device stays taken";
}

TEST_F(SlotHolds, ABreakOfTheHoldDoesNotTouchTheLeaseThatFollowed) {
  hold();
  restart(1);
  second.server(0).fate_for[Question::break_lock] = Fate{.silent = true};
  BreakRequest request{resource()};
  request.slot = "b";
  world.run(break_lock(second.server_set, request));
  const auto next = attempt(first, order_of(pool({"b"}), 10min));
  ASSERT_TRUE(next) << "two servers are free";
  request.hold = lease->id;
  request.tombstone_life = 1h;
  world.run([&]() -> asio::awaitable<bool> {
    (void)co_await second.server_set.server(1).break_lock(request, world.now() + 1s);
    co_return true;
  }());
  EXPECT_EQ(device_at(1).value().holder.id, next->id);
}

TEST_F(SlotHolds, DelayOnlyThoseWhoWantThem) {
  hold();
  ASSERT_TRUE(attempt(second, order_of(pool({"a"}), 10min)));
  first.server(2).fate_for[Question::acquire] = Fate{.silent = true};
  const auto waits = [&](const Mode& wanted) {
    const Instant began = world.now();
    EXPECT_FALSE(world.run(redlock::attempt(first.server_set, order_of(wanted), first.interrupt)));
    return world.now() - began >= first.server_set.server_timeout();
  };
  EXPECT_FALSE(waits(pool({"a"})));
  EXPECT_TRUE(waits(pool({"b"})));
  EXPECT_TRUE(waits(Mode{})) << "it wants all";
}

TEST_F(SlotHolds, AreNamedToThoseWhoWantThem) {
  hold();
  const auto made =
      world.run(redlock::attempt(first.server_set, order_of(pool({"b"})), first.interrupt));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().holder.value().id, lease->id);
}

}  // namespace
}  // namespace redlock::unit
