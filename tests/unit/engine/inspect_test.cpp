#include "engine/inspect.hpp"
#include "engine/held_lease.hpp"

#include <gtest/gtest.h>

#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;

class Survey : public testing::Test {
 protected:
  /// A lock that this tool took there.
  void lock(std::size_t store, std::string_view key) {
    Client& holder = world.client_of({store});
    AcquireOrder wanted = order();
    wanted.resource = resource(key);
    ASSERT_TRUE(world.run(attempt(holder.server_set, wanted, holder.interrupt)));
  }

  World world;
  Client& client = world.client();
};

TEST_F(Survey, InspectsEveryServerAndWaitsForAll) {
  world.store(0).hold_foreign(resource(), "theirs", 60s);
  client.server(1).fate.reply = 300ms;
  client.server(2).fate.silent = true;
  const auto votes = world.run(inspect(client.server_set, resource()));
  EXPECT_EQ(world.since_start(), server_timeout);
  ASSERT_EQ(votes.size(), 3);
  ASSERT_TRUE(std::holds_alternative<Taken>(votes[0]));
  EXPECT_EQ(std::get<Taken>(votes[0]).holder.id, id_of("theirs"));
  EXPECT_TRUE(std::holds_alternative<Free>(votes[1]));
  ASSERT_TRUE(std::holds_alternative<Fault>(votes[2]));
  EXPECT_EQ(std::get<Fault>(votes[2]).kind, FaultKind::silent);
}

TEST_F(Survey, DoesNotWaitLongerThanTheSlowestAnswer) {
  client.server(1).fate.reply = 300ms;
  world.run(inspect(client.server_set, resource()));
  EXPECT_EQ(world.since_start(), 300ms);
}

/// More than are asked about at once, and the answers about the first come last.
TEST_F(Survey, ReportsManyInOrder) {
  std::vector<Resource> resources;
  for (int i = 0; i < 300; ++i) resources.push_back(resource(std::to_string(i)));
  lock(0, resources.front().key());
  lock(0, resources.back().key());
  client.server(1).random_fate = [first = true]() mutable {
    return Fate{.silent = std::exchange(first, false)};
  };
  std::vector<Resource> told;
  std::vector<Resource> taken;
  const Inspected inspected = [&](const Resource& one, const std::vector<InspectVote>& votes) {
    EXPECT_EQ(votes.size(), 3);
    told.push_back(one);
    if (std::holds_alternative<Taken>(votes.at(0))) taken.push_back(one);
  };
  const auto all = [&]() -> asio::awaitable<bool> {
    co_await inspect_all(client.server_set, resources, RunsTold::last, inspected);
    co_return true;
  };
  world.run(all());
  EXPECT_EQ(world.since_start(), server_timeout);
  EXPECT_EQ(told, resources);
  EXPECT_EQ(taken, (std::vector{resources.front(), resources.back()}));
}

TEST_F(Survey, BreaksWhatIsNoLeaseOnlyWhereItWasNamed) {
  world.store(0).hold_foreign(resource(), "theirs", std::nullopt);
  world.store(2).hold_foreign(resource(), "another", std::nullopt);
  const BreakRequest request{resource()};
  auto votes = world.run(break_lock(client.server_set, request));
  ASSERT_TRUE(std::holds_alternative<ForeignKey>(votes.at(0)));
  EXPECT_EQ(std::get<ForeignKey>(votes[0]).holder.id, id_of("theirs"));
  EXPECT_TRUE(std::holds_alternative<NothingToBreak>(votes.at(1)));
  EXPECT_EQ(world.stores_in_use(resource()), 2);

  // What is there now was not shown.
  world.store(2).drop(resource());
  world.store(2).hold_foreign(resource(), "a third", std::nullopt);
  votes = world.run(break_foreign(client.server_set, request, std::move(votes)));
  ASSERT_TRUE(std::holds_alternative<Broken>(votes.at(0)));
  EXPECT_EQ(std::get<Broken>(votes[0]).holder.id, id_of("theirs"));
  EXPECT_TRUE(std::holds_alternative<NothingToBreak>(votes.at(1)));
  ASSERT_TRUE(std::holds_alternative<ForeignKey>(votes.at(2)));
  EXPECT_EQ(world.stores_in_use(resource()), 1);
}

TEST_F(Survey, BreaksOnlyTheLeaseWithThatFence) {
  const auto lease = world.run(attempt(client.server_set, order(), client.interrupt));
  world.settle_for(10ms);
  const Fence other(lease->fence.value() + 1);
  EXPECT_TRUE(std::holds_alternative<OtherFence>(
      world.run(break_lock(client.server_set, {resource(), other})).at(0)));
  EXPECT_EQ(world.stores_in_use(resource()), 3);
  EXPECT_TRUE(std::holds_alternative<Broken>(
      world.run(break_lock(client.server_set, {resource(), lease->fence})).at(0)));
  EXPECT_EQ(world.stores_in_use(resource()), 0);
}

/// A lease that the last server granted after it had been decided, with a fence of its own.
class LateGrant : public Survey {
 protected:
  LateGrant() {
    for (const std::size_t i : {0U, 1U}) world.store(i).set_counter(resource(), largest);
    client.server(2).fate.request = 50ms;
    lease = world.run(attempt(client.server_set, order(), client.interrupt)).value();
    world.settle_for(100ms);
    client.server(2).fate = {};
  }

  static constexpr std::uint64_t largest = 4'000'000'000'000;
  std::optional<Lease> lease;
};

TEST_F(LateGrant, IsShownWithTheLeasesFence) {
  ASSERT_LT(world.store(2).lock(resource())->fence, lease->fence);
  Client& other = world.client_of({2, 1, 0});
  EXPECT_EQ(summarize(world.run(inspect(other.server_set, resource()))).holder->fence,
            lease->fence);
}

TEST_F(LateGrant, IsBrokenWithTheLease) {
  const auto votes = world.run(break_lock(client.server_set, {resource(), lease->fence}));
  EXPECT_NE(broken_by_quorum(votes), nullptr);
  EXPECT_TRUE(std::holds_alternative<Broken>(votes.at(2)));
  EXPECT_EQ(world.stores_in_use(resource()), 0);
}

TEST_F(LateGrant, GetsTheLeasesFenceWhenItIsExtended) {
  HeldLease held(client.server_set, lease->resource, lease->token, lease->fence, lease->hold);
  EXPECT_EQ(world.run(held.extend(lease->ttl)).decision, ExtendDecision::confirmed);
  world.settle_for(10ms);
  EXPECT_EQ(world.store(2).lock(resource())->fence, lease->fence);
  EXPECT_EQ(world.store(2).counter(resource()), lease->fence.value());
}

TEST_F(Survey, ListsEveryResourceOnceAndSorted) {
  lock(0, "b");
  lock(0, "c");
  lock(1, "c");
  lock(1, "a");
  client.server(2).fate = denied;
  const Listing listing = world.run(list_resources(client.server_set, {}));
  EXPECT_EQ(listing.resources, (std::vector{resource("a"), resource("b"), resource("c")}));
  ASSERT_EQ(listing.faults.size(), 1);
  EXPECT_EQ(listing.faults[0].server, client.server(2).name());
  EXPECT_EQ(listing.faults[0].fault.kind, FaultKind::denied);
}

TEST_F(Survey, ListsWhatTheOthersHaveWhenOneIsSilent) {
  lock(0, "b");
  client.server(1).fate.silent = true;
  const Listing listing = world.run(list_resources(client.server_set, {}));
  EXPECT_EQ(listing.resources, std::vector{resource("b")});
  EXPECT_EQ(listing.faults.size(), 1);
  EXPECT_EQ(world.since_start(), server_timeout);
}

}  // namespace
}  // namespace redlock::unit
