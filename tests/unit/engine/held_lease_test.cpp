#include "engine/held_lease.hpp"

#include <gtest/gtest.h>

#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;

class HeldLeaseTest : public testing::Test {
 protected:
  explicit HeldLeaseTest(std::size_t servers = 3, bool supervised = false) : world(servers) {
    AcquireOrder wanted = order();
    wanted.owner.supervised = supervised;
    lease = world.run(attempt(client.server_set, wanted, client.interrupt)).value();
    world.settle_for(1s);
  }

  ExtendResult extend(Ttl length = ttl(10s)) { return world.run(held().extend(length)); }
  ReleaseResult release(bool by_hand = false) { return world.run(held().release(by_hand)); }

  HeldLease& held() {
    if (!held_) held_.emplace(client.server_set, lease->resource, lease->token, lease->fence);
    return *held_;
  }

  void take_over(std::size_t store) { world.store(store).hold_foreign(resource(), "theirs", 60s); }
  std::optional<Duration> remaining(std::size_t store) {
    const auto lock = world.store(store).lock(resource());
    if (!lock || lock->value != lease->token.secret()) return std::nullopt;
    return *lock->expires - world.now();
  }
  std::size_t heals() {
    std::size_t sent = 0;
    for (const AskedServer* server : client.servers) sent += server->asked(Question::heal).size();
    return sent;
  }

  World world;
  Client& client = world.client();
  std::optional<Lease> lease;

 private:
  std::optional<HeldLease> held_;
};

class HeldLeaseOnFive : public HeldLeaseTest {
 protected:
  HeldLeaseOnFive() : HeldLeaseTest(5) {}
};

class SupervisedLease : public HeldLeaseTest {
 protected:
  SupervisedLease() : HeldLeaseTest(3, true) {}
};

TEST_F(HeldLeaseTest, IsExtendedWithTheAnswerThatMakesTheQuorum) {
  for (std::size_t i = 0; i < 3; ++i)
    client.server(i).fate =
        i < 2 ? Fate{.request = 20ms, .reply = (i + 1) * 10ms} : Fate{.silent = true};
  const Instant t0 = world.now();
  const ExtendResult result = extend();
  EXPECT_EQ(result.decision, ExtendDecision::confirmed);
  EXPECT_EQ(result.t0, t0);
  EXPECT_EQ(world.now() - t0, 40ms);
  EXPECT_EQ(remaining(0), 10s - 20ms);
}

TEST_F(HeldLeaseTest, IsNeverShortened) {
  EXPECT_EQ(extend(ttl(2s)).decision, ExtendDecision::confirmed);
  EXPECT_EQ(remaining(0), 9s);
}

TEST_F(HeldLeaseTest, HasTooFewAnswersWithoutAQuorumWithinTheServerTimeout) {
  client.server(0).fate.silent = true;
  client.server(2).fate = out_of_memory;
  const Instant t0 = world.now();
  const ExtendResult result = extend();
  EXPECT_EQ(result.decision, ExtendDecision::too_few_answers);
  EXPECT_EQ(result.faults.size(), 2);
  EXPECT_EQ(result.faults.back().server, client.server(2).name());
  EXPECT_FALSE(result.not_ours);
  EXPECT_EQ(world.now() - t0, server_timeout);
}

TEST_F(HeldLeaseTest, IsLostAtOnceWhenAQuorumReportsIt) {
  client.server(2).fate.silent = true;
  take_over(0);
  world.store(1).drop(resource());
  const Instant t0 = world.now();
  const ExtendResult result = extend();
  EXPECT_EQ(result.decision, ExtendDecision::lost);
  ASSERT_TRUE(result.not_ours);
  EXPECT_EQ(result.not_ours->why, NotOurs::Why::held);
  EXPECT_EQ(result.not_ours->holder->id, id_of("theirs"));
  EXPECT_EQ(world.now(), t0);
}

TEST_F(HeldLeaseTest, IsNotResurrectedWhenAMajorityLostIt) {
  for (const std::size_t i : {0U, 1U}) world.store(i).lose_everything();
  EXPECT_EQ(extend().decision, ExtendDecision::lost);
  world.settle_for(1s);
  EXPECT_EQ(world.stores_in_use(resource()), 1);
  EXPECT_EQ(heals(), 0);
}

TEST_F(HeldLeaseTest, IsHealedOnAMinorityThatLostIt) {
  world.store(2).lose_everything();
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
  world.settle_for(10ms);
  ASSERT_TRUE(remaining(2));
  EXPECT_EQ(*remaining(2), 10s - 10ms);
  const Store::Lock healed = *world.store(2).lock(resource());
  EXPECT_EQ(healed.fence, lease->fence);
  EXPECT_EQ(world.now() - healed.since, 1s + 10ms);
  EXPECT_EQ(healed.owner.command, "make");
  EXPECT_EQ(world.store(2).counter(resource()), lease->fence.value());
}

TEST_F(HeldLeaseTest, IsHealedWithItsFenceAlsoWhenTheServersForgotIt) {
  for (const std::size_t i : {0U, 1U}) world.store(i).forget_owner(resource());
  world.store(2).lose_everything();
  extend();
  world.settle_for(10ms);
  EXPECT_EQ(world.store(2).counter(resource()), lease->fence.value());
}

TEST_F(HeldLeaseTest, IsHealedWithTheRecordOfAServerThatHasIt) {
  world.store(0).forget_owner(resource());
  world.store(2).lose_everything();
  extend();
  world.settle_for(10ms);
  ASSERT_TRUE(world.store(2).lock(resource()));
  EXPECT_EQ(world.store(2).lock(resource())->owner.command, "make");
}

TEST_F(HeldLeaseTest, IsHealedOnAServerThatReportsTheLossAfterTheDecision) {
  world.store(2).lose_everything();
  client.server(2).fate.reply = 300ms;
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
  EXPECT_EQ(heals(), 0);
  world.settle_for(1s);
  EXPECT_TRUE(remaining(2));
}

TEST_F(HeldLeaseTest, IsNotTakenFromAnotherThatHasItOnAMinority) {
  take_over(2);
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
  world.settle_for(10ms);
  EXPECT_EQ(heals(), 0);
  EXPECT_EQ(world.store(2).lock(resource())->value, "theirs");
}

TEST_F(HeldLeaseTest, IsHealedInTheSameRoundOnceAWaiterHasUndoneItsGrant) {
  Client& waiter = world.client(2);
  world.store(2).lose_everything();
  // A server takes its time to read the waiter's undo, and not that of the renewal.
  waiter.server(2).fate_for[Question::undo] = {.request = 100ms};
  EXPECT_FALSE(world.run(attempt(waiter.server_set, order(), waiter.interrupt)));
  ASSERT_FALSE(remaining(2));
  ASSERT_FALSE(world.store(2).is_free(resource()));
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
  world.settle_for(server_timeout);
  EXPECT_TRUE(remaining(2));
}

TEST_F(HeldLeaseTest, IsNeverWrittenOverTheLeaseOfAnother) {
  Client& other = world.client({.seed = 2, .servers = {2}});
  world.store(2).lose_everything();
  const auto theirs = world.run(attempt(other.server_set, order(), other.interrupt));
  ASSERT_TRUE(theirs);
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
  world.settle_for(2 * server_timeout);
  EXPECT_EQ(world.store(2).lock(resource())->value, theirs->token.secret());
  const std::size_t until_then = heals();
  world.settle_for(5s);
  EXPECT_EQ(heals(), until_then) << "for one server timeout only";
}

TEST_F(HeldLeaseTest, GetsItsRecordBackThoughEveryServerLostIt) {
  HeldLease kept(client.server_set, *lease);
  for (std::size_t i = 0; i < world.size(); ++i) world.store(i).forget_owner(resource());
  EXPECT_EQ(world.run(kept.extend(ttl(10s))).decision, ExtendDecision::confirmed);
  world.settle_for(10ms);
  for (std::size_t i = 0; i < world.size(); ++i) {
    const auto lock = world.store(i).lock(resource());
    ASSERT_TRUE(lock);
    EXPECT_FALSE(lock->foreign);
    EXPECT_EQ(lock->owner.command, "make");
    EXPECT_EQ(lock->fence, lease->fence);
  }
}

TEST_F(HeldLeaseTest, KeepsTheRecordThatAServerHas) {
  HeldLease kept(client.server_set, *lease);
  Owner asked = order().owner;
  asked.stop_request = StopRequest{"there", "you", "why"};
  world.store(0).change_owner(resource(), asked);
  world.store(1).forget_owner(resource());
  EXPECT_EQ(world.run(kept.extend(ttl(10s))).decision, ExtendDecision::confirmed);
  world.settle_for(10ms);
  for (const std::size_t i : {0U, 1U})
    EXPECT_TRUE(world.store(i).lock(resource())->owner.stop_request) << "server " << i;
}

TEST_F(HeldLeaseTest, IsNotHealedInARoundThatWasNotConfirmed) {
  world.store(2).lose_everything();
  client.server(0).fate.silent = true;
  EXPECT_EQ(extend().decision, ExtendDecision::too_few_answers);
  world.settle_for(2s);
  EXPECT_EQ(heals(), 0);
  EXPECT_FALSE(remaining(2));
}

TEST_F(HeldLeaseTest, CountsAServerThatGotItBackInTheNextRoundOnly) {
  world.store(2).lose_everything();
  client.server(0).fate.silent = true;
  // One extended it and one lost it: were its heal a vote, this would be a quorum.
  EXPECT_EQ(extend().decision, ExtendDecision::too_few_answers);
  client.server(0).fate.silent = false;
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
  world.settle_for(10ms);
  client.server(0).fate.silent = true;
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
}

TEST_F(HeldLeaseTest, IsNotHealedAfterItsRelease) {
  world.store(2).lose_everything();
  client.server(2).fate_for[Question::extend] = {
      .reply = 300ms};  // "gone", when the lease is released already
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
  EXPECT_EQ(release().decision, ReleaseDecision::released);
  world.settle_for(2s);
  EXPECT_EQ(heals(), 0);
  EXPECT_EQ(world.stores_in_use(resource()), 0);
}

TEST_F(HeldLeaseTest, IsGoneAlsoWhereItWasJustHealed) {
  world.store(2).lose_everything();
  client.server(2).fate_for[Question::heal] = {.request = 200ms};
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
  EXPECT_EQ(release().decision, ReleaseDecision::released);
  world.settle_for(2s);
  EXPECT_EQ(world.stores_in_use(resource()), 0);
}

TEST_F(HeldLeaseTest, HasTooFewAnswersAtTheEndOfItsTimeWhateverTheServerTimeout) {
  client.every_server({.silent = true});
  const Instant t0 = world.now();
  EXPECT_EQ(world.run(held().extend(ttl(10s), t0 + 100ms)).decision,
            ExtendDecision::too_few_answers);
  EXPECT_EQ(world.now() - t0, 100ms);
}

TEST_F(HeldLeaseTest, IsReleasedEverywhere) {
  EXPECT_EQ(release().decision, ReleaseDecision::released);
  EXPECT_EQ(world.stores_in_use(resource()), 0);
}

TEST_F(HeldLeaseTest, WaitsInItsReleaseForTheServersThatAnsweredLastAndForNoOther) {
  for (std::size_t i = 0; i < 3; ++i)
    client.server(i).fate = i < 2 ? Fate{.reply = (i + 1) * 100ms} : Fate{.silent = true};
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
  const Instant began = world.now();
  EXPECT_EQ(release().decision, ReleaseDecision::released);
  EXPECT_EQ(world.now() - began, 200ms);
}

TEST_F(HeldLeaseTest, WaitsInItsReleaseForMoreThanAQuorumWhenTheyAnsweredLast) {
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
  world.settle_for(1s);
  client.server(2).fate.reply = 300ms;
  const Instant began = world.now();
  EXPECT_EQ(release().decision, ReleaseDecision::released);
  EXPECT_EQ(world.now() - began, 300ms);
}

TEST_F(HeldLeaseTest, ReleasedByHandGivesTheSilentAsLongAgainAsTheQuorumTook) {
  Client& other = world.client(2);
  for (std::size_t i = 0; i < 2; ++i) other.server(i).fate.reply = 100ms;
  other.server(2).fate.silent = true;
  HeldLease elsewhere(other.server_set, lease->resource, lease->token, lease->fence);
  const Instant began = world.now();
  EXPECT_EQ(world.run(elsewhere.release(true)).decision, ReleaseDecision::released);
  EXPECT_EQ(world.now() - began, 200ms);
}

TEST_F(HeldLeaseTest, ReleasedByHandWaitsForServersThatAreMerelySlower) {
  Client& other = world.client(2);
  for (std::size_t i = 0; i < 3; ++i) other.server(i).fate.reply = (i + 1) * 100ms;
  HeldLease elsewhere(other.server_set, lease->resource, lease->token, lease->fence);
  const Instant began = world.now();
  EXPECT_EQ(world.run(elsewhere.release(true)).decision, ReleaseDecision::released);
  EXPECT_EQ(world.now() - began, 300ms);
}

TEST_F(HeldLeaseTest, WaitsInItsReleaseForAServerThatWasSilentWhenOthersGiveNoDecision) {
  client.server(2).fate.silent = true;
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
  world.settle_for(server_timeout);
  client.server(2).fate = {.reply = 100ms};
  client.server(0).fate = out_of_memory;
  EXPECT_EQ(release().decision, ReleaseDecision::released);
}

TEST_F(HeldLeaseTest, ReportsThatAServerRefusedTheReleaseThoughItIsSilentSince) {
  client.server(0).fate = refused;
  client.server(1).fate.reply = server_timeout - 10ms;
  world.in(5ms, [&] { client.server(0).fate = Fate{.silent = true}; });
  const ReleaseResult result = release();
  EXPECT_EQ(result.decision, ReleaseDecision::released);
  ASSERT_EQ(result.faults.size(), 1);
  EXPECT_TRUE(result.faults.front().fault.refused);
  EXPECT_FALSE(client.server_set.answered(0)) << "or closing would wait for the server timeout";
}

TEST_F(HeldLeaseTest, IsNotOursToReleaseWhenAQuorumReportsIt) {
  for (const std::size_t i : {0U, 2U}) take_over(i);
  const ReleaseResult result = release();
  EXPECT_EQ(result.decision, ReleaseDecision::not_ours);
  ASSERT_TRUE(result.not_ours && result.not_ours->holder);
  EXPECT_EQ(result.not_ours->holder->id, id_of("theirs"));
  EXPECT_EQ(world.store(0).lock(resource())->value, "theirs");
  EXPECT_TRUE(world.store(1).is_free(resource()));
}

TEST_F(HeldLeaseTest, IsUnavailableForReleaseWithoutAQuorumOfAnswers) {
  for (const std::size_t i : {0U, 1U}) client.server(i).fate.silent = true;
  const Instant began = world.now();
  const ReleaseResult result = release();
  EXPECT_EQ(result.decision, ReleaseDecision::unavailable);
  EXPECT_EQ(result.faults.size(), 2);
  EXPECT_EQ(world.now() - began, server_timeout);
}

TEST_F(HeldLeaseTest, LearnsThatItWasReleasedByHand) {
  Client& other = world.client(2);
  HeldLease elsewhere(other.server_set, lease->resource, lease->token, lease->fence);
  EXPECT_EQ(world.run(elsewhere.release(true)).decision, ReleaseDecision::released);
  const ExtendResult result = extend();
  EXPECT_EQ(result.decision, ExtendDecision::lost);
  EXPECT_EQ(result.not_ours->why, NotOurs::Why::released);
}

TEST_F(HeldLeaseTest, LearnsThatItWasReleasedByHandThoughOthersHoldItNow) {
  take_over(0);
  Client& other = world.client(2);
  HeldLease elsewhere(other.server_set, lease->resource, lease->token, lease->fence);
  EXPECT_EQ(world.run(elsewhere.release(true)).decision, ReleaseDecision::released);
  world.settle_for(1s);
  take_over(1);
  take_over(2);
  const ExtendResult result = extend();
  EXPECT_EQ(result.decision, ExtendDecision::lost);
  EXPECT_EQ(result.not_ours->why, NotOurs::Why::released);
}

TEST_F(SupervisedLease, IsNotReleasedByHand) {
  const ReleaseResult result = release(true);
  EXPECT_EQ(result.decision, ReleaseDecision::supervised);
  ASSERT_TRUE(result.supervisor);
  EXPECT_EQ(result.supervisor->id, lease->id);
  EXPECT_EQ(world.stores_in_use(resource()), 3);
}

TEST_F(SupervisedLease, IsReleasedByItsOwnProcess) {
  EXPECT_EQ(release(false).decision, ReleaseDecision::released);
  EXPECT_EQ(world.stores_in_use(resource()), 0);
}

TEST_F(SupervisedLease, StaysSupervisedWhereItWasHealed) {
  world.store(1).lose_everything();
  extend();
  world.settle_for(10ms);
  EXPECT_TRUE(world.store(1).lock(resource())->owner.supervised);
}

TEST_F(HeldLeaseOnFive, ToleratesTwoThatLostItAndHealsBoth) {
  for (const std::size_t i : {1U, 3U}) world.store(i).lose_everything();
  client.server(3).fate.reply = 50ms;
  EXPECT_EQ(extend().decision, ExtendDecision::confirmed);
  world.settle_for(200ms);
  EXPECT_EQ(world.stores_in_use(resource()), 5);
}

TEST_F(HeldLeaseOnFive, IsNotLostWhileAQuorumMayStillHaveIt) {
  for (const std::size_t i : {0U, 1U}) world.store(i).lose_everything();
  for (const std::size_t i : {3U, 4U}) client.server(i).fate.silent = true;
  EXPECT_EQ(extend().decision, ExtendDecision::too_few_answers);
}

asio::awaitable<bool> closed(ServerSet& server_set, CloseMode close_mode) {
  co_await server_set.close(close_mode);
  co_return true;
}

class Closing : public testing::Test {
 protected:
  Closing() {
    client.server(2).fate.silent = true;
    EXPECT_TRUE(world.run(attempt(client.server_set, order(), client.interrupt)));
    world.settle_for(1s);
  }

  Duration close(CloseMode close_mode) {
    const Instant began = world.now();
    world.run(closed(client.server_set, close_mode));
    return world.now() - began;
  }

  World world;
  Client& client = world.client();
};

TEST_F(Closing, WaitsForTheServersThatAnsweredLast) {
  const Instant now = world.now();
  EXPECT_EQ(close(CloseMode::immediate), 0s);
  EXPECT_EQ(client.server(0).close_deadline, now + server_timeout);
  EXPECT_EQ(client.server(2).close_deadline, now);
}

TEST_F(Closing, WaitsForAllWhenSomethingWasUndone) {
  EXPECT_EQ(close(CloseMode::drain), server_timeout);
}

/// A server that does not know the scripts takes more than one question, so its connection must not
/// be half-closed before it has answered.
TEST(ClosingAfterAGrant, WaitsForASlowServersAnswerBeforeItEndsTheConnection) {
  World world;
  Client& client = world.client();
  client.server(2).fate.reply = 50ms;
  EXPECT_TRUE(world.run(attempt(client.server_set, order(), client.interrupt)));
  const Instant granted = world.now();
  world.run(closed(client.server_set, CloseMode::linger));
  EXPECT_EQ(world.now(), granted + 50ms);
  EXPECT_EQ(client.server(2).close_deadline, granted + 50ms + server_timeout);
}

}  // namespace
}  // namespace redlock::unit
