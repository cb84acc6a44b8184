#include "engine/inherited_lease.hpp"

#include <gtest/gtest.h>

#include "core/validity.hpp"
#include "engine/waiter.hpp"
#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;

/// An outer lease of nine seconds, taken by a `run` or by hand, and another client below it. Unless
/// it is a run, it only hands the lease on.
class InheritedLeaseTest : public testing::Test {
 protected:
  explicit InheritedLeaseTest(bool supervised = true) {
    AcquireOrder wanted = order(9s);
    wanted.owner.supervised = supervised;
    if (supervised) wanted.owner.renewed_for = 9s;
    outer = world.run(attempt(keeper.server_set, wanted, keeper.interrupt)).value();
    world.settle_for(1s);
  }

  AcquireOrder nested(bool guarded, Duration needed_validity = 1s) {
    AcquireOrder wanted = order(9s, needed_validity);
    wanted.parent_claim = ParentClaim{outer->id, outer->token, outer->fence};
    if (guarded) wanted.parent_claim->guard_lives = [] { return true; };
    return wanted;
  }
  AcquireOrder nested_run() {
    AcquireOrder wanted = nested(/*guarded=*/true);
    wanted.owner.renewed_for = 9s;
    return wanted;
  }

  Inheritance ask(bool guarded, Duration needed_validity = 1s) {
    return world.run(inherit(client.server_set, nested(guarded, needed_validity)));
  }

  Result<std::shared_ptr<HeldSet>, WaitFailure> take(const AcquireOrder& wanted) {
    std::vector<AcquireOrder> orders{wanted};
    waiter.emplace(client.server_set, std::move(orders), once, client.interrupt);
    return world.run(waiter->next());
  }

  void take_over(std::size_t store) { world.store(store).hold_foreign(resource(), "theirs", 60s); }

  World world;
  Client& keeper = world.client(1);
  Client& client = world.client(2);
  std::optional<Lease> outer;
  std::optional<SetWaiter> waiter;
};

class LeftByHand : public InheritedLeaseTest {
 protected:
  LeftByHand() : InheritedLeaseTest(false) {}
};

TEST_F(InheritedLeaseTest, IsGrantedWhileItIsValidAndEndsWithIt) {
  const Instant t0 = world.now();
  const Inheritance inheritance = ask(/*guarded=*/true);
  ASSERT_TRUE(inheritance.lease);
  EXPECT_EQ(inheritance.lease->keeping, Keeping::inherited);
  EXPECT_EQ(inheritance.lease->token, outer->token);
  EXPECT_GT(inheritance.lease->deadline, t0);
  EXPECT_LT(inheritance.lease->deadline, t0 + 8s);  // of nine, one has gone by
}

TEST_F(InheritedLeaseTest, DoesNotEndLaterThanItsKeeperMayBringTheEndAfterAClockWasSetBack) {
  for (std::size_t i = 0; i < world.size(); ++i) world.server(i).step_wall(-1h);
  const Inheritance inheritance = ask(/*guarded=*/true);
  ASSERT_TRUE(inheritance.lease);
  EXPECT_LE(inheritance.lease->deadline, world.now() + 9s);
}

TEST_F(InheritedLeaseTest, IsNotGrantedByOneServerUnderTwoNames) {
  const auto inherits = [this](const std::vector<std::size_t>& servers) {
    Client& identified = world.client(ClientOptions{.identifies_itself = true, .servers = servers});
    identified.server(2).fate.silent = true;
    return world.run(inherit(identified.server_set, nested(/*guarded=*/true))).lease.has_value();
  };
  EXPECT_TRUE(inherits({0, 1, 2}));
  EXPECT_FALSE(inherits({0, 0, 2}));
}

TEST_F(InheritedLeaseTest, IsRefusedWhenItsGuardIsNotKnown) {
  EXPECT_FALSE(ask(/*guarded=*/false).lease);
}

TEST_F(InheritedLeaseTest, IsRefusedHoweverManyServersHaveLostTheRecordOfItsGuard) {
  for (std::size_t i = world.size(); i-- > 0;) {
    world.store(i).forget_owner(resource());
    EXPECT_FALSE(ask(/*guarded=*/false).lease) << i;
  }
}

TEST_F(LeftByHand, IsNotHandedOverWhenNoQuorumKnowsWhoseItIs) {
  world.store(0).forget_owner(resource());
  world.store(1).forget_owner(resource());
  EXPECT_FALSE(ask(/*guarded=*/false).lease);
}

TEST_F(LeftByHand, IsHandedOver) {
  const Inheritance inheritance = ask(/*guarded=*/false);
  ASSERT_TRUE(inheritance.lease);
  EXPECT_EQ(inheritance.lease->keeping, Keeping::used);
}

TEST_F(InheritedLeaseTest, NeedsAQuorum) {
  take_over(0);
  EXPECT_TRUE(ask(/*guarded=*/true).lease);
  take_over(1);
  EXPECT_FALSE(ask(/*guarded=*/true).lease);
}

TEST_F(InheritedLeaseTest, IsUnansweredOnceNoVoteCanChangeThat) {
  for (const std::size_t i : {0U, 1U}) client.server(i).fate = refused;
  client.server(2).fate.reply = 20ms;
  const Inheritance inheritance = ask(/*guarded=*/true);
  EXPECT_TRUE(inheritance.unanswered);
  // The third may answer yet.
  EXPECT_EQ(inheritance.faults.size(), 2U);
}

TEST_F(InheritedLeaseTest, CountsTheEndThatAQuorumShows) {
  // One server was healed later, and keeps it longer.
  world.run(HeldLease(keeper.server_set, resource(), outer->token, outer->fence).extend(ttl(9s)));
  world.store(0).hold_foreign(resource(), outer->token.secret(), 100s);
  const Instant t0 = world.now();
  const Inheritance inheritance = ask(/*guarded=*/true);
  ASSERT_TRUE(inheritance.lease);
  EXPECT_LE(inheritance.lease->deadline, deadline(t0, ttl(9s)));
}

TEST_F(InheritedLeaseTest, DistinguishesOneThatEndsTooSoonFromOneThatIsGone) {
  EXPECT_TRUE(ask(/*guarded=*/true, 20s).unanswered);
  EXPECT_FALSE(ask(/*guarded=*/true, 20s).lease);
  for (std::size_t i = 0; i < world.size(); ++i) world.store(i).drop(resource());
  EXPECT_FALSE(ask(/*guarded=*/true, 20s).unanswered);
}

TEST_F(InheritedLeaseTest, IsUsedByANestedRunWithOneQuestion) {
  const Inheritance inheritance = world.run(inherit(client.server_set, nested_run()));
  ASSERT_TRUE(inheritance.lease);
  EXPECT_EQ(inheritance.lease->keeping, Keeping::used);
  EXPECT_TRUE(inheritance.lease->user);
  EXPECT_GT(inheritance.lease->deadline, world.now() + 8s);
  EXPECT_TRUE(client.server(0).asked(Question::inspect).empty());
}

TEST_F(InheritedLeaseTest, IsUsedByANestedRunOnlyWithAQuorum) {
  take_over(0);
  EXPECT_TRUE(world.run(inherit(client.server_set, nested_run())).lease);
  take_over(1);
  EXPECT_FALSE(world.run(inherit(client.server_set, nested_run())).lease);
}

TEST_F(InheritedLeaseTest, IsNeitherExtendedNorReleased) {
  const auto set = take(nested(/*guarded=*/true)).value();
  set->keep();
  world.settle_for(20s);  // no client extends it
  EXPECT_TRUE(set->lost());
  EXPECT_LE(set->deadline(), world.now());
  EXPECT_TRUE(client.server(0).asked(Question::extend).empty());
  EXPECT_EQ(world.run(set->release()).result.decision, ReleaseDecision::released);
  EXPECT_TRUE(client.server(0).asked(Question::release).empty());
}

TEST_F(InheritedLeaseTest, LastsAsLongAsItsGuardKeepsIt) {
  auto kept = std::make_shared<HeldSet>(keeper.server_set, keeper.interrupt);
  kept->add(*outer);
  kept->keep();
  const auto set = take(nested(/*guarded=*/true)).value();
  set->keep();
  world.settle_for(60s);
  EXPECT_FALSE(set->lost());
  EXPECT_GT(set->deadline(), world.now());
  (void)world.run(kept->release());
  world.settle_for(10s);
  EXPECT_TRUE(set->lost());
}

TEST_F(LeftByHand, IsExtendedButNotReleased) {
  const auto set = take(nested(/*guarded=*/false)).value();
  set->keep();
  world.settle_for(30s);
  EXPECT_FALSE(set->lost());
  (void)world.run(set->release());
  EXPECT_EQ(world.store(0).lock(resource())->value, outer->token.secret());
}

TEST_F(InheritedLeaseTest, IsNoReasonToWaitForOurselves) {
  const auto step = take(nested(/*guarded=*/true, 20s));
  EXPECT_EQ(step.error().failure.why, AcquireDecision::unavailable);
  EXPECT_TRUE(step.error().final);
}

TEST_F(InheritedLeaseTest, GivesWayToAnOrdinaryAcquireWhenItIsGone) {
  for (std::size_t i = 0; i < world.size(); ++i) world.store(i).drop(resource());
  const auto set = take(nested(/*guarded=*/true)).value();
  EXPECT_EQ(set->leases().front().keeping, Keeping::own);
  EXPECT_NE(set->leases().front().token, outer->token);
}

TEST_F(InheritedLeaseTest, IsNotBusyWhenNoQuorumReportsIt) {
  for (std::size_t i = 1; i < world.size(); ++i)
    client.server(i).fate_for[Question::inspect].silent = true;
  const auto failure = take(nested(/*guarded=*/true)).error().failure;
  EXPECT_EQ(failure.why, AcquireDecision::unavailable);
  EXPECT_EQ(failure.faults.size(), 2U);
}

TEST_F(LeftByHand, IsCheckedAgainUntilAQuorumAnswers) {
  for (std::size_t i = 1; i < world.size(); ++i)
    client.server(i).fate_for[Question::inspect].silent = true;
  constexpr WaitPolicy patient{.wait = 1h, .unavailable_wait = 10s, .retry_delay = 100ms};
  std::vector<AcquireOrder> orders{nested(/*guarded=*/false)};
  waiter.emplace(client.server_set, std::move(orders), patient, client.interrupt);
  EXPECT_FALSE(world.run(waiter->next()).error().final);
  for (std::size_t i = 1; i < world.size(); ++i) client.server(i).fate_for.clear();
  const auto set = world.run(waiter->next()).value();
  EXPECT_EQ(set->leases().front().keeping, Keeping::used);
}

}  // namespace
}  // namespace redlock::unit
