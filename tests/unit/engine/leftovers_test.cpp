#include <gtest/gtest.h>

#include "core/validity.hpp"
#include "engine/held_lease.hpp"
#include "engine/held_set.hpp"
#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;

/// A lease on three servers, and what becomes of its release.
class Leftovers : public testing::Test {
 protected:
  void grant() {
    const auto granted = world.run(attempt(client.server_set, order(lease_ttl), client.interrupt));
    ASSERT_TRUE(granted);
    lease = *granted;
    world.settle_for(1s);
  }

  ReleaseResult release(Duration expire_in = Duration::zero()) {
    held.emplace(client.server_set, lease->resource, lease->token, lease->fence, lease->hold,
                 lease->ttl);
    return world.run(held->release(/*by_hand=*/false, expiring_in(expire_in)));
  }
  ReleaseResult release_by_hand() {
    held.emplace(client.server_set, lease->resource, lease->token, lease->fence);
    return world.run(held->release(/*by_hand=*/true));
  }

  void on_release(std::initializer_list<std::size_t> servers, const Fate& fate) {
    for (const std::size_t i : servers) client.server(i).fate_for[Question::release] = fate;
  }
  void serve_again() {
    for (AskedServer* server : client.servers) server->fate_for.clear();
  }

  std::size_t leftovers() { return client.server_set.leftovers().size(); }

  static constexpr Duration lease_ttl = 10s;
  World world;
  Client& client = world.client();
  std::optional<Lease> lease;
  std::optional<HeldLease> held;
};

TEST_F(Leftovers, ARefusedReleaseIsRepeatedWithinTheServerTimeout) {
  grant();
  on_release({0, 1, 2}, refused);
  world.in(server_timeout / 2, [this] { serve_again(); });
  EXPECT_EQ(release().decision, ReleaseDecision::released);
  EXPECT_EQ(world.stores_in_use(resource()), 0U);
  EXPECT_EQ(leftovers(), 0U);
}

TEST_F(Leftovers, ARefusedReleaseGoesOnInTheBackground) {
  grant();
  on_release({0, 1}, refused);
  const Instant began = world.now();
  EXPECT_EQ(release().decision, ReleaseDecision::unavailable);
  EXPECT_LE(world.now() - began, server_timeout);
  EXPECT_EQ(leftovers(), 2U);
  world.settle_for(3s);
  EXPECT_EQ(leftovers(), 2U);
  serve_again();
  world.settle_for(1s);
  EXPECT_EQ(leftovers(), 0U);
  EXPECT_EQ(world.stores_in_use(resource()), 0U);
}

TEST_F(Leftovers, OfSeveralLeasesDelayTheEndNoLongerThanThoseOfOne) {
  const auto set = std::make_shared<HeldSet>(client.server_set, client.interrupt);
  for (const char* key : {"a", "b", "c"}) {
    AcquireOrder one = order(lease_ttl);
    one.resource = unit::resource(key);
    set->add(*world.run(attempt(client.server_set, one, client.interrupt)));
  }
  world.settle_for(1s);
  on_release({0, 1}, refused);
  const Instant began = world.now();
  EXPECT_EQ(world.run(set->release()).result.decision, ReleaseDecision::unavailable);
  EXPECT_LE(world.now() - began, server_timeout);
  EXPECT_EQ(leftovers(), 6U);
}

TEST_F(Leftovers, ItIsRepeatedWithBackOff) {
  grant();
  on_release({0}, refused);
  release();
  world.settle_for(5s);
  const std::size_t asked = client.server(0).asked(Question::release).size();
  EXPECT_GT(asked, 8U);
  EXPECT_LT(asked, 40U);
}

TEST_F(Leftovers, ItIsRepeatedUntilItHasExpiredThere) {
  grant();
  on_release({0, 1, 2}, refused);
  const Instant began = world.now();
  release();
  world.settle_for(lease_ttl - 1s);
  EXPECT_EQ(leftovers(), 3U);
  world.settle();
  EXPECT_EQ(leftovers(), 0U);
  EXPECT_GE(world.now() - began, max_retention(ttl(lease_ttl)));
  EXPECT_LE(world.now() - began, max_retention(ttl(lease_ttl)) + 2 * server_timeout);
}

TEST_F(Leftovers, SilenceOfAServerThatMayHaveItIsFollowedByAnotherRelease) {
  grant();
  on_release({0}, {.silent = true});
  EXPECT_EQ(release().decision, ReleaseDecision::released);
  EXPECT_EQ(leftovers(), 1U);
  serve_again();
  world.settle_for(1s);
  EXPECT_EQ(world.stores_in_use(resource()), 0U);
}

TEST_F(Leftovers, AServerThatWasNeverReachedHasNone) {
  world.server(2).crash(/*loses_everything=*/true);
  grant();
  EXPECT_EQ(release().decision, ReleaseDecision::released);
  EXPECT_EQ(leftovers(), 0U);
}

TEST_F(Leftovers, AServerThatNeverAnsweredIsGivenSecondsAndNoTtl) {
  client.server(2).fate.silent = true;
  grant();
  const Instant began = world.now();
  EXPECT_EQ(release().decision, ReleaseDecision::released);
  EXPECT_EQ(leftovers(), 1U);
  world.settle();
  EXPECT_EQ(leftovers(), 0U);
  EXPECT_LT(world.now() - began, lease_ttl / 2);
}

TEST_F(Leftovers, AServerThatWasSlowerThanTheCommandIsReleasedOverAnotherConnection) {
  client.server(2).fate_for[Question::acquire] = {.request = server_timeout / 2};
  lease = *world.run(attempt(client.server_set, order(lease_ttl), client.interrupt));
  // It reads the acquire now, and runs it when the client has gone.
  on_release({2}, {.silent = true});
  release();
  serve_again();
  world.settle_for(3s);
  EXPECT_EQ(world.stores_in_use(resource()), 0U);
}

TEST_F(Leftovers, WhatWasReleasedUnheardIsNotTakenForLost) {
  grant();
  on_release({0, 1}, {.reply_lost = true});
  EXPECT_EQ(release().decision, ReleaseDecision::unavailable);
}

TEST_F(Leftovers, WhereThereIsNoRightItIsNotRepeated) {
  grant();
  on_release({0, 1, 2}, denied);
  EXPECT_EQ(release().decision, ReleaseDecision::unavailable);
  EXPECT_EQ(leftovers(), 0U);
}

TEST_F(Leftovers, ByHandARefusalIsAwaitedAndThenReported) {
  grant();
  on_release({0}, refused);
  const ReleaseResult result = release_by_hand();
  EXPECT_EQ(result.decision, ReleaseDecision::released);
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_TRUE(result.faults.front().fault.refused);
  EXPECT_GT(client.server(0).asked(Question::release).size(), 3U);
  EXPECT_EQ(leftovers(), 0U);
}

TEST_F(Leftovers, ByHandARefusalThatEndsInTimeHasNoEffect) {
  grant();
  on_release({0}, refused);
  world.in(server_timeout / 2, [this] { serve_again(); });
  EXPECT_TRUE(release_by_hand().faults.empty());
  EXPECT_EQ(world.stores_in_use(resource()), 0U);
}

TEST_F(Leftovers, WhatMustBeKeptForAWhileIsKeptToTheSameInstant) {
  grant();
  on_release({0, 1, 2}, refused);
  const Instant until = world.now() + 4s;
  release(4s);
  world.settle_for(2s);
  serve_again();
  world.settle_for(1s);
  ASSERT_FALSE(world.store(0).is_free(resource()));
  EXPECT_NEAR(static_cast<double>((*world.store(0).lock(resource())->expires - until).count()), 0,
              1e9);
}

TEST_F(Leftovers, WhatIsKeptForAWhileIsMarkedByARepetitionToo) {
  for (const bool in_background : {false, true}) {
    grant();
    on_release({0, 1, 2}, refused);
    if (!in_background) world.in(server_timeout / 2, [this] { serve_again(); });
    Owner ended = order().owner;
    ended.finished = Finished{4s, 3, std::nullopt};
    held.emplace(client.server_set, lease->resource, lease->token, lease->fence, lease->hold,
                 lease->ttl);
    ReleaseTerms terms = expiring_in(4s);
    terms.finished = ended;
    world.run(held->release(/*by_hand=*/false, std::move(terms)));
    serve_again();
    world.settle_for(1s);
    for (std::size_t i = 0; i < world.size(); ++i) {
      const auto kept = world.store(i).lock(resource());
      ASSERT_TRUE(kept);
      ASSERT_TRUE(kept->owner.finished) << "server " << i << ", in background " << in_background;
      EXPECT_EQ(kept->owner.finished->exit_code, 3);
    }
    world.settle_for(5s);
  }
}

TEST_F(Leftovers, AnUndoThatWasRefusedIsRepeated) {
  for (const std::size_t i : {1U, 2U}) world.store(i).hold_foreign(resource(), "theirs", 1s);
  client.server(0).fate_for[Question::undo] = refused;
  client.server(0).fate_for[Question::release] = refused;
  EXPECT_FALSE(world.run(attempt(client.server_set, order(lease_ttl), client.interrupt)));
  world.settle_for(2s);
  EXPECT_FALSE(world.store(0).is_free(resource()));
  EXPECT_EQ(leftovers(), 1U);
  serve_again();
  world.settle_for(1s);
  EXPECT_TRUE(world.store(0).is_free(resource()));
  EXPECT_EQ(leftovers(), 0U);
}

TEST_F(Leftovers, OfAnotherSlotTakeNoCopyOfTheLeaseWithThem) {
  // Server 2 alone has slot 0 taken, so it grants slot 1, and the undo of that is refused for a
  // while.
  AcquireOrder in_slot = order(lease_ttl);
  in_slot.mode = {true, 2};
  Client& other = world.client_of({2});
  (void)other.server_set.random();  // the same seed makes the same tokens
  const Lease others = *world.run(attempt(other.server_set, in_slot, other.interrupt));
  on_release({2}, refused);
  client.server(2).fate_for[Question::undo] = refused;
  // It stands still, and so finds all answers at once.
  client.every_server({.reply = 10ms});
  client.server(2).fate_for[Question::acquire] = {.reply = 10ms};
  world.in(5ms, [this] { client.stop_for(10ms); });
  const auto granted = world.run(attempt(client.server_set, in_slot, client.interrupt));
  ASSERT_TRUE(granted);
  lease = *granted;
  ASSERT_EQ(lease->hold.slots, Slots{0});
  world.settle_for(100ms);
  ASSERT_EQ(leftovers(), 1U);
  HeldLease theirs(other.server_set, others.resource, others.token, others.fence, others.hold);
  world.run(theirs.release(/*by_hand=*/false));

  held.emplace(client.server_set, lease->resource, lease->token, lease->fence, lease->hold,
               lease->ttl);
  const auto heals = [this] { return client.server(2).asked(Question::heal).size(); };
  world.run(held->extend(ttl(lease_ttl)));
  world.settle_for(1s);
  EXPECT_EQ(heals(), 0U) << "the release that is still repeated would take it away";
  serve_again();
  world.settle_for(1s);
  ASSERT_EQ(leftovers(), 0U);
  world.run(held->extend(ttl(lease_ttl)));
  world.settle_for(1s);
  EXPECT_EQ(heals(), 1U);
  EXPECT_EQ(world.stores_in_use(resource()), 3U);
}

TEST_F(Leftovers, OfManyAttemptsAskASilentServerOneAtATime) {
  constexpr std::size_t many = 50;
  on_release({0}, {.silent = true});
  for (std::size_t i = 0; i < many; ++i) {
    const std::array<std::byte, Token::bits / 8> random{std::byte(i)};
    const Token token = Token::from_random(random);
    client.server_set.clear_away({0, {resource(), token}, world.now() + 60s});
    // Of each once, also when it is told twice.
    client.server_set.clear_away({0, {resource(), token}, world.now() + 60s});
  }
  EXPECT_EQ(leftovers(), many);
  world.settle_for(20s);
  EXPECT_LE(client.server(0).asked(Question::release).size(), 40U);
  serve_again();
  world.settle_for(3s);
  EXPECT_EQ(leftovers(), 0U);
}

TEST_F(Leftovers, AreKnownAfterTheEndForTheProcessThatGoesOn) {
  grant();
  on_release({0}, refused);
  release();
  const auto close = [](ServerSet& server_set) -> asio::awaitable<bool> {
    co_await server_set.close(CloseMode::immediate);
    co_return true;
  };
  world.run(close(client.server_set));
  const std::size_t asked = client.server(0).asked(Question::release).size();
  world.settle();
  EXPECT_EQ(client.server(0).asked(Question::release).size(), asked);
  ASSERT_EQ(leftovers(), 1U);
  const Leftover leftover = client.server_set.leftovers().front();
  EXPECT_EQ(leftover.server, 0U);
  EXPECT_EQ(leftover.release.token, lease->token);
}

/// What of a long key a silent server may read in pieces.
class LongKeys : public Leftovers {
 protected:
  LongKeys() {
    long_order.resource = unit::resource(std::string(Resource::max_bytes, 'k'));
    client.server(2).fate.silent = true;
  }

  /// Released while server 2 is silent, and once more a second after that is confirmed.
  void expect_two_releases() {
    lease = *world.run(attempt(client.server_set, long_order, client.interrupt));
    release();
    EXPECT_EQ(leftovers(), 1U);
    world.settle_for(2s);
    const auto at = releases();
    ASSERT_EQ(at.size(), 2U);
    EXPECT_GE(at[1] - at[0], 1s);
  }

  /// The releases that server 2 gets from now on, in a ttl.
  std::vector<Instant> releases() {
    const auto before =
        static_cast<std::ptrdiff_t>(client.server(2).asked(Question::release).size());
    client.server(2).fate.silent = false;
    world.settle();
    const std::vector<Instant> all = client.server(2).asked(Question::release);
    return {all.begin() + before, all.end()};
  }

  AcquireOrder long_order = order(lease_ttl);
};

TEST_F(LongKeys, AreReleasedOnceMoreASecondAfterAServerThatNeverAnsweredIsBack) {
  expect_two_releases();
}

TEST_F(LongKeys, AreReleasedOnceMoreASecondAfterAServerThatHadAnsweredOnceIsBack) {
  client.server(2).fate.silent = false;
  grant();
  release();
  client.server(2).fate.silent = true;
  expect_two_releases();
}

TEST_F(LongKeys, OfAFailedAttemptAreNotReleasedWhileTheConnectionCarriesTheUndo) {
  for (const std::size_t i : {0U, 1U})
    world.store(i).hold_foreign(long_order.resource, "theirs", 1s);
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(world.run(attempt(client.server_set, long_order, client.interrupt)));
  EXPECT_EQ(leftovers(), 0U);
}

}  // namespace
}  // namespace redlock::unit
