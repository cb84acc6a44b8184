#include <gtest/gtest.h>

#include <bit>

#include "core/validity.hpp"
#include "engine/inherited_lease.hpp"
#include "engine/inspect.hpp"
#include "engine/waiter.hpp"
#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;

/// A lease that was acquired to be handed over, and runs that use it (PROTOCOL U1-U5).
class UsersOfALease : public testing::Test {
 protected:
  void acquire(Duration length, bool supervised = false) {
    AcquireOrder wanted = order(length);
    wanted.owner.supervised = supervised;
    if (supervised) wanted.owner.renewed_for = length;
    lease = world.run(attempt(keeper.server_set, wanted, keeper.interrupt)).value();
    world.settle_for(1s);
  }

  AcquireOrder order_of_user() {
    AcquireOrder wanted = order(9s, 1s);
    wanted.owner.command = "deploy.sh";
    wanted.owner.renewed_for = 9s;
    wanted.parent_claim = ParentClaim{lease->id, lease->token, lease->fence};
    if (below_guard) wanted.parent_claim->guard_lives = [this] { return guard_lives; };
    return wanted;
  }
  Result<std::shared_ptr<HeldSet>, WaitFailure> join(Client& user) {
    std::vector<AcquireOrder> orders{order_of_user()};
    waiters_.push_back(
        std::make_unique<SetWaiter>(user.server_set, std::move(orders), once, user.interrupt));
    return world.run(waiters_.back()->next());
  }
  std::shared_ptr<HeldSet> works(Client& user) {
    auto set = join(user).value();
    EXPECT_EQ(set->leases().front().keeping, Keeping::used);
    set->keep();
    return set;
  }
  ReleaseDecision end(HeldSet& set) {
    const auto released = world.run(set.release());
    world.settle_for(20s);
    return released.result.decision;
  }

  ReleaseDecision release(bool by_hand = true) {
    HeldLease held(keeper.server_set, *lease);
    return world.run(held.release(by_hand)).decision;
  }
  bool is_busy() {
    return !world.run(attempt(other.server_set, order(), other.interrupt)).has_value();
  }
  std::size_t users_at(std::size_t server) {
    const auto votes = world.run(inspect(other.server_set, resource(), RunsTold::none));
    const auto* taken = std::get_if<Taken>(&votes[server]);
    return taken != nullptr ? taken->holder.users.size() : 0;
  }

  World world;
  Client& keeper = world.client(1);
  Client& first = world.client(2);
  Client& second = world.client(3);
  Client& other = world.client(4);
  std::optional<Lease> lease;
  bool below_guard = false;
  bool guard_lives = true;

 private:
  std::vector<std::unique_ptr<SetWaiter>> waiters_;
};

TEST_F(UsersOfALease, KeepItAfterItsKeeperHasReleasedIt) {
  acquire(30s);
  const auto set = works(first);
  EXPECT_EQ(release(), ReleaseDecision::released);
  for (int minute = 0; minute < 3; ++minute) {
    world.settle_for(1min);
    EXPECT_FALSE(set->lost());
    EXPECT_GT(set->deadline(), world.now());
    EXPECT_TRUE(is_busy());
  }
  EXPECT_EQ(end(*set), ReleaseDecision::released);
  EXPECT_FALSE(is_busy());
}

TEST_F(UsersOfALease, EndWithoutAnEffectOnALeaseThatIsKept) {
  acquire(60s);
  const auto set = works(first);
  EXPECT_EQ(users_at(0), 1U);
  EXPECT_EQ(end(*set), ReleaseDecision::released);
  EXPECT_EQ(users_at(0), 0U);
  EXPECT_TRUE(is_busy());
  EXPECT_EQ(release(), ReleaseDecision::released);
  EXPECT_FALSE(is_busy());
}

TEST_F(UsersOfALease, FreeALeaseWhoseKeeperIsGone) {
  acquire(30s, /*supervised=*/true);
  below_guard = true;
  const auto set = works(first);
  keeper.die();
  world.settle_for(1min);
  EXPECT_TRUE(is_busy());
  (void)world.run(set->release());
  EXPECT_EQ(world.stores_in_use(resource()), 0U) << "not at the user's end";
}

TEST_F(UsersOfALease, WithALongerTtlDoNotKeepItForLongerThanTheyLast) {
  acquire(20s, /*supervised=*/true);
  below_guard = true;
  AcquireOrder wanted = order_of_user();
  wanted.ttl = ttl(1h);
  SetWaiter waiter(first.server_set, {wanted}, once, first.interrupt);
  const auto set = world.run(waiter.next()).value();
  for (int round = 0; round < 6; ++round) {
    world.settle_for(7s);
    world.run(HeldLease(keeper.server_set, *lease).extend(ttl(20s)));
  }
  const Instant promised = world.now() + 20s;
  (void)world.run(set->release());
  EXPECT_TRUE(is_busy());
  for (std::size_t i = 0; i < world.size(); ++i) {
    const auto expires = world.store(i).lock(resource())->expires;
    EXPECT_GE(*expires, promised - 1s);
    EXPECT_LE(*expires, promised + 1s);
  }
  // The host crashes.
  keeper.die();
  first.die();
  world.settle_for(21s);
  EXPECT_FALSE(is_busy());
}

TEST_F(UsersOfALease, OutliveSilentServersUnderALongLease) {
  acquire(24h);
  const auto set = works(first);
  world.settle_for(1min);
  first.every_server(sim::Fate{.silent = true});
  world.settle_for(10min);
  EXPECT_FALSE(set->lost());
  EXPECT_GT(set->deadline() - world.now(), 20h);
  EXPECT_EQ(release(), ReleaseDecision::released) << "meanwhile";
  EXPECT_TRUE(is_busy());
  first.every_server({});
  world.settle_for(1min);
  EXPECT_FALSE(set->lost());
  EXPECT_EQ(end(*set), ReleaseDecision::released);
  EXPECT_FALSE(is_busy());
}

TEST_F(UsersOfALease, RelyOnNoLaterEndThanAQuorumHasForThem) {
  acquire(30s);
  // One server has the lease for longer than the others.
  for (const std::size_t server : {1U, 2U})
    keeper.server(server).fate_for[Question::extend] = denied;
  world.run(HeldLease(keeper.server_set, *lease).extend(ttl(1h)));
  for (const std::size_t server : {1U, 2U}) keeper.server(server).fate_for.clear();
  const auto set = works(first);
  EXPECT_LE(set->deadline(), world.now() + 30s);
  // The keeper renews its own end, on which a user that does not renew must not rely.
  const Instant before = set->deadline();
  first.every_server(sim::Fate{.silent = true});
  world.run(HeldLease(keeper.server_set, *lease).extend(ttl(1h)));
  EXPECT_EQ(set->deadline(), before);
  EXPECT_EQ(release(), ReleaseDecision::released);
  world.settle_for(40s);
  EXPECT_TRUE(set->lost());
  EXPECT_FALSE(is_busy());
}

TEST_F(UsersOfALease, NeedAQuorumForTheirRegistration) {
  acquire(1h);
  for (const std::size_t server : {1U, 2U})
    first.server(server).fate_for[Question::extend] = denied;
  const auto joined = join(first);
  ASSERT_FALSE(joined.has_value());
  world.settle_for(10s);
  EXPECT_EQ(users_at(0), 0U) << "the registration was undone";
  EXPECT_EQ(release(), ReleaseDecision::released);
  EXPECT_FALSE(is_busy());
}

TEST_F(UsersOfALease, LeaveNothingWhenTheAnswersToTheirRegistrationAreLost) {
  acquire(1h);
  first.server(1).fate_for[Question::extend].reply_lost = true;
  first.server(2).fate_for[Question::extend].reply_lost = true;
  ASSERT_FALSE(join(first).has_value());
  for (std::size_t i = 0; i < world.size(); ++i) first.server(i).fate_for.clear();
  world.settle_for(30s);
  for (std::size_t i = 0; i < world.size(); ++i) EXPECT_EQ(users_at(i), 0U) << i;
}

TEST_F(UsersOfALease, AreRefusedOnceTheKeeperHasLeftAtAQuorum) {
  acquire(30s);
  const auto set = works(first);
  EXPECT_EQ(release(), ReleaseDecision::released);
  const auto refused = join(second);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().failure.why, AcquireDecision::busy);
  EXPECT_EQ(users_at(0), 1U);
  EXPECT_EQ(end(*set), ReleaseDecision::released);
}

TEST_F(UsersOfALease, ComeWhileTheKeeperLeavesInAnyOrder) {
  for (unsigned released = 0; released < 8; ++released) {
    acquire(20s);
    // These servers have read the keeper's release before the registration, the others after it.
    for (std::size_t i = 0; i < world.size(); ++i)
      keeper.server(i).fate_for[Question::release].silent = (released >> i & 1U) == 0;
    (void)release(/*by_hand=*/false);
    for (std::size_t i = 0; i < world.size(); ++i) keeper.server(i).fate_for.clear();
    const auto joined = join(first);
    const bool is_user = joined && joined.value()->leases().front().keeping == Keeping::used;
    if (joined) joined.value()->keep();
    world.settle_for(1min);  // the keeper's releases are repeated
    if (joined) {
      EXPECT_FALSE(joined.value()->lost()) << released;
      EXPECT_TRUE(is_busy()) << released;
      EXPECT_EQ(is_user, std::popcount(released) < 2) << released;
      (void)end(*joined.value());
    }
    world.settle_for(1min);
    EXPECT_FALSE(is_busy()) << released;
    world.settle_for(1min);
  }
}

TEST_F(UsersOfALease, RestoreTheLeaseOnAServerThatLostIt) {
  acquire(30s);
  const auto set = works(first);
  world.store(0).lose_everything();
  EXPECT_EQ(release(), ReleaseDecision::released);
  world.settle_for(10s);
  EXPECT_EQ(users_at(0), 1U);
  world.store(1).lose_everything();
  world.settle_for(10s);
  EXPECT_FALSE(set->lost());
  EXPECT_TRUE(is_busy());
  EXPECT_EQ(end(*set), ReleaseDecision::released);
  EXPECT_FALSE(is_busy());
}

TEST_F(UsersOfALease, FreeItAtOnceAlsoAtAServerThatLostItBeforeItsRelease) {
  for (const bool by_hand : {false, true}) {
    acquire(30s);
    const auto set = works(first);
    world.store(0).lose_everything();
    if (by_hand) {
      HeldLease held(other.server_set, lease->resource, lease->token, lease->fence);
      EXPECT_EQ(world.run(held.release(by_hand)).decision, ReleaseDecision::released);
    } else {
      EXPECT_EQ(release(by_hand), ReleaseDecision::released);
    }
    world.settle_for(10s);
    EXPECT_EQ(users_at(0), 1U) << "the user restored it";
    (void)world.run(set->release());
    EXPECT_EQ(world.stores_in_use(resource()), 0U);
  }
}

TEST_F(UsersOfALease, KeepALeaseWhoseRecordAloneWasLost) {
  acquire(30s);
  const auto set = works(first);
  for (std::size_t i = 0; i < world.size(); ++i) world.store(i).forget_owner(resource());
  EXPECT_EQ(release(), ReleaseDecision::released);
  EXPECT_TRUE(is_busy());
  world.settle_for(1min);
  EXPECT_FALSE(set->lost());
  EXPECT_TRUE(is_busy());
  EXPECT_EQ(end(*set), ReleaseDecision::released);
  EXPECT_FALSE(is_busy());
}

TEST_F(UsersOfALease, EndAtAServerThatWasSilentForLongerThanTheirTtl) {
  acquire(1h);
  const auto set = works(first);
  first.server(0).fate.silent = true;
  EXPECT_EQ(end(*set), ReleaseDecision::released);
  world.settle_for(1min);
  EXPECT_EQ(users_at(0), 1U);
  first.server(0).fate = {};
  world.settle_for(10s);
  EXPECT_EQ(users_at(0), 0U);
}

TEST_F(UsersOfALease, ThatAreKilledKeepItUntilTheirEnd) {
  acquire(30s);
  const auto set = works(first);
  EXPECT_EQ(release(), ReleaseDecision::released);
  first.die();
  EXPECT_TRUE(is_busy());
  world.settle_for(31s);
  EXPECT_FALSE(is_busy());
}

TEST_F(UsersOfALease, AreAskedToStopByAKeeperThatLeaves) {
  acquire(30s);
  const auto set = works(first);
  const auto kept = std::make_shared<HeldSet>(keeper.server_set, keeper.interrupt);
  kept->add(*lease);
  kept->keep();
  const StopRequest request{"web1", "alice", "--max-hold 2h has ended"};
  ReleaseTerms terms;
  terms.stop_users = request;
  EXPECT_EQ(world.run(kept->release(terms)).result.decision, ReleaseDecision::released);
  world.settle_for(5s);
  EXPECT_FALSE(set->lost());
  ASSERT_TRUE(set->stop_requested());
  EXPECT_EQ(set->stop_requested()->request.reason, request.reason);
  EXPECT_TRUE(is_busy()) << "until they have stopped";
  EXPECT_EQ(end(*set), ReleaseDecision::released);
  EXPECT_FALSE(is_busy());
}

TEST_F(UsersOfALease, LearnThatItWasBroken) {
  acquire(30s);
  const auto set = works(first);
  EXPECT_EQ(release(), ReleaseDecision::released);
  world.run(break_lock(other.server_set, {resource()}));
  world.settle_for(10s);
  EXPECT_TRUE(set->lost());
  EXPECT_FALSE(is_busy());
}

TEST_F(UsersOfALease, AreNotMadeByALookAtIt) {
  acquire(30s);
  EXPECT_TRUE(world.run(has_parent_lease(first.server_set, order_of_user())));
  EXPECT_EQ(users_at(0), 0U);
  release();
  EXPECT_FALSE(world.run(has_parent_lease(first.server_set, order_of_user())));
}

TEST_F(UsersOfALease, AreNotThoseWhoOnlyHandItOn) {
  acquire(30s);
  AcquireOrder by_hand = order_of_user();
  by_hand.owner.renewed_for = 0s;
  const Inheritance inheritance = world.run(inherit(first.server_set, by_hand));
  ASSERT_TRUE(inheritance.lease);
  EXPECT_FALSE(inheritance.lease->user);
  EXPECT_EQ(users_at(0), 0U);
}

// --- Nested runs ---

/// A lease that a `run` keeps, and runs nested below it.
class NestedRuns : public UsersOfALease {
 protected:
  NestedRuns() { below_guard = true; }

  /// The run ends with its command; `leaves`: processes of which are left.
  ReleaseDecision run_ends(bool leaves, std::optional<StopRequest> stop = std::nullopt) {
    HeldLease held(keeper.server_set, *lease);
    ReleaseTerms terms;
    terms.may_have_users = leaves;
    terms.stop_users = std::move(stop);
    return world.run(held.release(/*by_hand=*/false, std::move(terms))).decision;
  }
};

TEST_F(NestedRuns, KeepTheLeaseOfARunThatHasEnded) {
  acquire(30s, /*supervised=*/true);
  const auto set = works(first);
  EXPECT_EQ(run_ends(/*leaves=*/true), ReleaseDecision::released);
  world.settle_for(3min);
  EXPECT_FALSE(set->lost());
  EXPECT_TRUE(is_busy());
  EXPECT_EQ(end(*set), ReleaseDecision::released);
  EXPECT_FALSE(is_busy());
}

TEST_F(NestedRuns, ThatAreDeadKeepNothing) {
  acquire(30s, /*supervised=*/true);
  (void)works(first);
  first.die();
  EXPECT_EQ(run_ends(/*leaves=*/false), ReleaseDecision::released);
  EXPECT_FALSE(is_busy());
}

TEST_F(NestedRuns, ComeBelowAUserAlsoOnceTheKeeperHasLeft) {
  acquire(30s, /*supervised=*/true);
  const auto outer = works(first);
  EXPECT_EQ(run_ends(/*leaves=*/true), ReleaseDecision::released);
  const auto inner = works(second);
  EXPECT_EQ(users_at(0), 2U);
  EXPECT_EQ(end(*outer), ReleaseDecision::released);
  world.settle_for(1min);
  EXPECT_FALSE(inner->lost());
  EXPECT_TRUE(is_busy());
  EXPECT_EQ(end(*inner), ReleaseDecision::released);
  EXPECT_FALSE(is_busy());
}

TEST_F(NestedRuns, KeepALeaseWhoseRecordWasLostAndHealed) {
  acquire(30s, /*supervised=*/true);
  const auto set = works(first);
  for (const Duration before_release : {0s, 5s}) {
    for (std::size_t i = 0; i < world.size(); ++i) world.store(i).forget_owner(resource());
    world.run(HeldLease(keeper.server_set, *lease).extend(ttl(30s)));
    world.settle_for(before_release);
  }
  EXPECT_EQ(run_ends(/*leaves=*/true), ReleaseDecision::released);
  EXPECT_TRUE(is_busy());
  world.settle_for(1min);
  EXPECT_FALSE(set->lost());
  EXPECT_TRUE(is_busy());
  EXPECT_EQ(end(*set), ReleaseDecision::released);
  EXPECT_FALSE(is_busy());
}

TEST_F(NestedRuns, ObeyARunThatReplacesTheirKeeperOnceItsGuardsAreGone) {
  acquire(30s, /*supervised=*/true);
  Owner owner = world.store(0).lock(resource())->owner;
  owner.place = Place{10, "aa"};
  const auto change_all = [&] {
    for (std::size_t i = 0; i < world.size(); ++i) world.store(i).change_owner(resource(), owner);
  };
  change_all();
  const auto set = works(first);
  guard_lives = false;
  owner.stop_request = StopRequest{"web1", "alice", "", Place{9, "aa"}};
  change_all();
  world.settle_for(10s);
  EXPECT_FALSE(set->stop_requested()) << "of an older one";
  owner.stop_request->newer = Place{11, "aa"};
  change_all();
  world.settle_for(10s);
  EXPECT_TRUE(set->stop_requested());
  EXPECT_EQ(end(*set), ReleaseDecision::released);
}

TEST_F(NestedRuns, ThatLostTheParentLeaseDoNotAskForItAgain) {
  acquire(30s, /*supervised=*/true);
  const AcquireOrder wanted = order_of_user();
  world.run(break_lock(other.server_set, {resource()}));
  const auto next = world.run(attempt(other.server_set, order(5s), other.interrupt));
  ASSERT_TRUE(next);
  SetWaiter waiter(first.server_set, {wanted}, for_ever, first.interrupt);
  auto result = world.run(waiter.next());
  for (int attempts = 1; !result && attempts < 20; ++attempts) result = world.run(waiter.next());
  ASSERT_TRUE(result);
  EXPECT_EQ(result.value()->leases().front().keeping, Keeping::own);
  EXPECT_GT(first.server(0).asked(Question::acquire).size(), 1U);
  EXPECT_EQ(first.server(0).asked(Question::extend).size(), 1U);
}

TEST_F(NestedRuns, WhoseGuardEndsBeforeTheyComeAreUsersOfNoRun) {
  acquire(30s, /*supervised=*/true);
  guard_lives = false;
  EXPECT_FALSE(join(first).has_value());
  EXPECT_EQ(users_at(0), 0U);
}

TEST_F(NestedRuns, LeaveAStopToTheGuardAboveThemWhileItLives) {
  acquire(30s, /*supervised=*/true);
  const auto set = works(first);
  EXPECT_EQ(run_ends(/*leaves=*/true, StopRequest{"web1", "alice", "why"}),
            ReleaseDecision::released);
  world.settle_for(10s);
  EXPECT_FALSE(set->stop_requested());
  guard_lives = false;
  world.settle_for(5s);
  EXPECT_TRUE(set->stop_requested());
  EXPECT_TRUE(is_busy()) << "until they have stopped";
  EXPECT_EQ(end(*set), ReleaseDecision::released);
  EXPECT_FALSE(is_busy());
}

}  // namespace
}  // namespace redlock::unit
