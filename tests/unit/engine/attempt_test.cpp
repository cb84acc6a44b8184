#include "engine/attempt.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "core/validity.hpp"
#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;
using Why = AcquireDecision;
using Outcome = Result<Lease, AttemptFailure>;

Outcome try_once(World& world, Client& client, const AcquireOrder& wanted = order()) {
  return world.run(attempt(client.server_set, wanted, client.interrupt));
}

/// Which servers were told to take something back.
std::vector<std::size_t> taken_back(const Client& client) {
  std::vector<std::size_t> servers;
  for (std::size_t i = 0; i < client.servers.size(); ++i) {
    if (!client.server(i).asked(Question::undo).empty()) servers.push_back(i);
  }
  return servers;
}

void expect_no_ghosts(World& world) {
  world.settle_for(5s);  // half a ttl: what is gone then did not just expire
  EXPECT_EQ(world.stores_in_use(resource()), 0);
}

Why why_of(const Outcome& outcome) {
  return outcome ? Why::interrupted : outcome.error().why;
}

std::vector<std::string> names_of(const std::vector<ServerFault>& faults) {
  std::vector<std::string> names;
  for (const ServerFault& fault : faults) names.push_back(fault.server);
  return names;
}

const Fate silence{.silent = true};
const Fate ghost{.reply_lost = true};

class AttemptOnServers : public testing::TestWithParam<std::size_t> {
 protected:
  std::size_t servers = GetParam();
  std::size_t quorum = quorum_of(servers);
  World world{servers};
  Client& client = world.client();
};

TEST_P(AttemptOnServers, LocksAllOfThemAndTheLeaseNamesWhatWasGranted) {
  const Instant t0 = world.now();
  const Outcome lease = try_once(world, client);
  ASSERT_TRUE(lease);
  world.settle();
  ASSERT_EQ(world.stores_in_use(resource()), servers);
  for (std::size_t i = 0; i < servers; ++i)
    EXPECT_EQ(world.store(i).lock(resource())->value, lease->token.secret());
  EXPECT_EQ(lease->deadline, deadline(t0, ttl(10s)));
  EXPECT_EQ(lease->id, id_of(lease->token.secret()));
  EXPECT_EQ(lease->ttl, ttl(10s));
  EXPECT_EQ(lease->resource, resource());
  EXPECT_TRUE(taken_back(client).empty());
}

TEST_P(AttemptOnServers, IsGrantedWithTheAnswerThatMakesTheQuorum) {
  for (std::size_t i = 0; i < servers; ++i)
    client.server(i).fate = i < quorum ? Fate{.reply = (i + 1) * 10ms} : silence;
  const Outcome lease = try_once(world, client);
  ASSERT_TRUE(lease);
  EXPECT_EQ(world.since_start(), quorum * 10ms);
}

TEST_P(AttemptOnServers, IsUnavailableWithOneAnswerLess) {
  for (std::size_t i = quorum - 1; i < servers; ++i) client.server(i).fate = silence;
  const Outcome outcome = try_once(world, client);
  EXPECT_EQ(why_of(outcome), Why::unavailable);
  EXPECT_EQ(world.since_start(), server_timeout);
  EXPECT_EQ(outcome.error().faults.size(), servers - quorum + 1);
  expect_no_ghosts(world);
}

TEST_P(AttemptOnServers, FailsAsSoonAsTooManyAreHeldAndAQuorumHasAnswered) {
  const std::size_t enough = servers - quorum + 1;
  for (std::size_t i = 0; i < servers; ++i) client.server(i).fate.reply = i < enough ? 5ms : 100ms;
  for (std::size_t i = 0; i < enough; ++i) world.store(i).hold_foreign(resource(), "theirs", 60s);
  const Outcome outcome = try_once(world, client);
  EXPECT_EQ(why_of(outcome), enough >= quorum ? Why::busy : Why::split);
  EXPECT_EQ(world.since_start(), enough >= quorum ? 5ms : 100ms);
  world.settle_for(5s);
  EXPECT_EQ(world.stores_in_use(resource()), enough);
}

INSTANTIATE_TEST_SUITE_P(From, AttemptOnServers, testing::Values(1, 2, 3, 4, 5));

TEST(Attempt, CountsTheLeaseFromBeforeTheRequestWasSent) {
  World world;
  Client& client = world.client();
  client.every_server({.request = 200ms, .reply = 100ms});
  const Instant t0 = world.now();
  const Outcome lease = try_once(world, client);
  ASSERT_TRUE(lease);
  EXPECT_EQ(world.since_start(), 300ms);
  EXPECT_EQ(lease->deadline, deadline(t0, ttl(10s)));
}

TEST(Attempt, IsTooSlowWhenTheNeededValidityIsNotLeft) {
  // 1 s less 12 ms of drift less 400 ms of waiting leaves 588 ms.
  for (const auto& [needed, granted] : {std::pair{587ms, true}, std::pair{588ms, false}}) {
    World world;
    Client& client = world.client();
    client.every_server({.request = 100ms, .reply = 300ms});
    const Outcome outcome = try_once(world, client, order(1s, needed));
    EXPECT_EQ(outcome.has_value(), granted) << needed.count();
    if (granted) continue;
    EXPECT_EQ(why_of(outcome), Why::too_slow);
    EXPECT_EQ(outcome.error().round_trip, 400ms);
    world.settle_for(150ms);
    EXPECT_EQ(world.stores_in_use(resource()), 0);
  }
}

TEST(Attempt, IsTooSlowWhenTheFenceTookTooLongToWriteBack) {
  World world;
  Client& client = world.client();
  world.store(0).set_counter(resource(), Fence::max / 2);
  for (const std::size_t i : {1U, 2U})
    client.server(i).fate_for[Question::raise_fence] = {.reply = 450ms};
  EXPECT_EQ(why_of(try_once(world, client, order(1s, 600ms))), Why::too_slow);
  expect_no_ghosts(world);
}

TEST(Attempt, IsTooSlowWhenTheMachineStoodStillBetweenTheAnswersAndTheGrant) {
  World world;
  Client& client = world.client();
  client.every_server({.reply = 10ms});
  world.in(5ms, [&] { client.stop_for(9s); });
  EXPECT_EQ(why_of(try_once(world, client, order(10s, 1s))), Why::too_slow);
  world.settle_for(10ms);
  EXPECT_EQ(world.stores_in_use(resource()), 0);
}

TEST(Attempt, HasANewTokenEachTimeAndTheSameForEveryServer) {
  World world;
  Client& client = world.client();
  for (std::size_t i = 0; i < 3; ++i)
    world.store(i).hold_foreign(resource(), "theirs", std::nullopt);
  for (int i = 0; i < 3; ++i) (void)try_once(world, client);
  const auto tokens = client.server(0).tokens(Question::acquire);
  EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), 3);
  EXPECT_EQ(client.server(1).tokens(Question::acquire), tokens);
  EXPECT_EQ(client.server(2).tokens(Question::acquire), tokens);
}

TEST(Attempt, UndoesWhereverTheAnswerWasNotHeld) {
  World world(5);
  Client& client = world.client();
  for (const std::size_t i : {0U, 1U}) world.store(i).hold_foreign(resource(), "theirs", 60s);
  for (const std::size_t i : {0U, 1U}) client.server(i).fate.reply = 10ms;
  client.server(2).fate = out_of_memory;
  client.server(4).fate = silence;
  ASSERT_FALSE(try_once(world, client));
  EXPECT_EQ(taken_back(client), (std::vector<std::size_t>{2, 3, 4}));
  EXPECT_EQ(client.server(3).tokens(Question::undo), client.server(3).tokens(Question::acquire));
}

TEST(Attempt, LeavesNoGhostWhenAnswersAreLost) {
  World world;
  Client& client = world.client();
  for (const std::size_t i : {0U, 1U}) client.server(i).fate = ghost;
  EXPECT_EQ(why_of(try_once(world, client)), Why::unavailable);
  expect_no_ghosts(world);
}

TEST(Attempt, LeavesNoGhostWhenAnswersAreLate) {
  World world;
  Client& client = world.client();
  client.server(0).fate.reply = server_timeout + 1ms;
  client.server(1).fate.request = 2s;
  EXPECT_EQ(why_of(try_once(world, client)), Why::unavailable);
  expect_no_ghosts(world);
}

TEST(Attempt, LeavesNoGhostWhenTheGrantComesAfterTheFailureWasCertain) {
  World world;
  Client& client = world.client();
  for (const std::size_t i : {0U, 1U}) world.store(i).hold_foreign(resource(), "theirs", 1s);
  client.server(2).fate = {.request = 200ms, .reply = 100ms};
  EXPECT_EQ(why_of(try_once(world, client)), Why::busy);
  EXPECT_EQ(world.since_start(), 0ms);
  expect_no_ghosts(world);
}

class AttemptToFence : public testing::Test {
 protected:
  void SetUp() override { world.store(0).set_counter(resource(), high - 1); }

  /// Who stood still meanwhile finds all answers to its acquire at once, and counts them together.
  void answers_come_together() {
    for (AskedServer* server : client.servers)
      server->fate_for[Question::acquire] = {.reply = 10ms};
    world.in(5ms, [this] { client.stop_for(10ms); });
  }

  std::size_t at_or_above(Fence fence) {
    std::size_t stores = 0;
    for (std::size_t i = 0; i < world.size(); ++i)
      stores += world.store(i).counter(resource()) >= fence.value() ? 1 : 0;
    return stores;
  }

  static constexpr std::uint64_t high = Fence::max / 2;
  World world;
  Client& client = world.client();
};

TEST_F(AttemptToFence, HasTheLargestFenceAndRaisesTheOthersBeforeTheGrant) {
  client.every_server({.reply = 10ms});
  const Outcome lease = try_once(world, client);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->fence, Fence(high));
  EXPECT_GE(at_or_above(lease->fence), 2);
  EXPECT_EQ(world.since_start(), 20ms);
  EXPECT_TRUE(client.server(0).asked(Question::raise_fence).empty());
}

TEST_F(AttemptToFence, RaisesNothingWhenTheFencesAgree) {
  for (const std::size_t i : {1U, 2U}) world.store(i).set_counter(resource(), high - 1);
  ASSERT_TRUE(try_once(world, client));
  for (const AskedServer* server : client.servers)
    EXPECT_TRUE(server->asked(Question::raise_fence).empty());
}

TEST_F(AttemptToFence, NeedsNoRaiseOnceLateGrantsMakeAQuorumWithTheFence) {
  World five(5);
  Client& other = five.client();
  for (const std::size_t i : {0U, 3U, 4U}) five.store(i).set_counter(resource(), high - 1);
  for (const std::size_t i : {3U, 4U}) other.server(i).fate.reply = 20ms;
  for (const std::size_t i : {1U, 2U})
    other.server(i).fate_for[Question::raise_fence] = {.reply = 400ms};
  ASSERT_TRUE(try_once(five, other));
  EXPECT_EQ(five.since_start(), 20ms);
}

TEST_F(AttemptToFence, IsRefusedWhenNoQuorumCanHaveTheFence) {
  for (const std::size_t i : {1U, 2U})
    client.server(i).fate_for[Question::raise_fence] = out_of_memory;
  answers_come_together();
  const Outcome outcome = try_once(world, client);
  EXPECT_EQ(why_of(outcome), Why::unavailable);
  EXPECT_EQ(names_of(outcome.error().faults),
            (std::vector<std::string>{client.server(1).name(), client.server(2).name()}));
  expect_no_ghosts(world);
}

TEST_F(AttemptToFence, CountsNoRaiseByAnotherServerThanTheOneThatGranted) {
  Client& identified = world.client(ClientOptions{.identifies_itself = true});
  identified.server(0).fate_for[Question::acquire] = {.reply = 20ms};
  identified.server(2).fate = silence;
  world.in(10ms, [&] {  // the address of a server that granted moves to another that did
    identified.leads_to[1] = 0;
    world.server(1).cut_all();
  });
  EXPECT_EQ(why_of(try_once(world, identified)), Why::unavailable);
  EXPECT_FALSE(identified.server(1).asked(Question::raise_fence).empty());
}

TEST_F(AttemptToFence, IsRefusedWhenAServerShowsItselfTwiceBeforeTheOthersHaveTheFence) {
  Client& twice = world.client_of({0, 1, 2, 2});
  twice.server(3).fate = {.request = 5ms};
  for (const std::size_t i : {1U, 2U})
    twice.server(i).fate_for[Question::raise_fence] = {.request = 20ms};
  EXPECT_EQ(why_of(try_once(world, twice)), Why::duplicate);
}

TEST_F(AttemptToFence, IsGrantedWhenOneOfTwoRaisesFails) {
  client.server(1).fate_for[Question::raise_fence] = out_of_memory;
  client.server(2).fate_for[Question::raise_fence] = {.reply = 30ms};
  answers_come_together();
  const Outcome lease = try_once(world, client);
  ASSERT_TRUE(lease);
  EXPECT_EQ(at_or_above(lease->fence), 2);
}

TEST_F(AttemptToFence, IsRefusedWhenTheLeaseIsGoneBeforeItsFenceWasWritten) {
  for (const std::size_t i : {1U, 2U})
    client.server(i).fate_for[Question::raise_fence] = {.request = 50ms};
  world.in(20ms, [this] {
    for (const std::size_t i : {1U, 2U}) world.store(i).drop(resource());
  });
  EXPECT_EQ(why_of(try_once(world, client)), Why::unavailable);
  expect_no_ghosts(world);
}

TEST_F(AttemptToFence, CanBeInterruptedWhileItWritesBack) {
  for (const std::size_t i : {1U, 2U})
    client.server(i).fate_for[Question::raise_fence] = {.request = 1s};
  world.in(30ms, [this] { client.interrupt.raise(); });
  EXPECT_EQ(why_of(try_once(world, client)), Why::interrupted);
  EXPECT_EQ(world.since_start(), 30ms);
  expect_no_ghosts(world);
}

TEST(Attempt, GetsFencesThatRiseWhateverClientsClocksShowAndServersForget) {
  World world(1);
  Fence last;
  for (const Milliseconds offset : {8s, -8s, 0s, -3600s}) {
    Client& client = world.client(static_cast<std::uint64_t>(offset.count()));
    client.set_wall_offset(offset);
    const Outcome lease = try_once(world, client);
    ASSERT_TRUE(lease);
    EXPECT_GT(lease->fence, last) << offset.count();
    last = lease->fence;
    world.store(0).lose_everything();
    world.settle_for(10ms);
  }
}

TEST(Attempt, RefusesAServerThatWasGivenTwice) {
  World world;
  Client& client = world.client_of({0, 0, 1});
  client.server(2).fate.reply = 100ms;
  EXPECT_EQ(why_of(try_once(world, client)), Why::duplicate);
  EXPECT_EQ(world.since_start(), 0ms);
  expect_no_ghosts(world);
}

TEST(Attempt, ReportsOnceThatAServerWasGivenTwiceWhenThatShowsTooLate) {
  World world;
  Client& client = world.client_of({0, 1, 0});
  std::vector<std::string> reported;
  client.server_set.on_late_duplicate([&](const std::string& name) { reported.push_back(name); });
  client.server(2).fate.request = 20ms;
  ASSERT_TRUE(try_once(world, client));
  EXPECT_TRUE(reported.empty());
  world.settle();
  EXPECT_EQ(reported, std::vector{client.server(2).name()});
}

TEST(Attempt, ReportsNoServerTwiceWhenItIsRefusedForThat) {
  World world;
  Client& client = world.client_of({0, 0, 1});
  std::vector<std::string> reported;
  client.server_set.on_late_duplicate([&](const std::string& name) { reported.push_back(name); });
  EXPECT_EQ(why_of(try_once(world, client)), Why::duplicate);
  world.settle();
  EXPECT_TRUE(reported.empty());
}

TEST(Attempt, NeverCountsAServerThatWasGivenTwiceForTwoVotes) {
  World world;
  Client& client = world.client_of({0, 0, 0});
  EXPECT_EQ(why_of(try_once(world, client)), Why::duplicate);
  expect_no_ghosts(world);
}

TEST(Attempt, ReportsWhichServersDoNotVoteAndWhy) {
  for (const auto& [fate, expected, words] :
       {std::tuple{denied, Why::denied, "NOPERM"},
        std::tuple{misconfigured, Why::misconfigured, "unknown command"},
        std::tuple{out_of_memory, Why::unavailable, "OOM"},
        std::tuple{malformed, Why::unavailable, "malformed"}}) {
    World world;
    Client& client = world.client();
    for (const std::size_t i : {0U, 2U}) client.server(i).fate = fate;
    const Outcome outcome = try_once(world, client);
    EXPECT_EQ(why_of(outcome), expected);
    EXPECT_EQ(names_of(outcome.error().faults),
              (std::vector<std::string>{client.server(0).name(), client.server(2).name()}));
    EXPECT_NE(outcome.error().faults[0].fault.text.find(words), std::string::npos);
    expect_no_ghosts(world);
  }
}

TEST(Attempt, ToleratesAMinorityOfFaults) {
  World world;
  Client& client = world.client();
  client.server(0).fate = denied;
  EXPECT_TRUE(try_once(world, client));
}

TEST(Attempt, IsBusyWhenOneLeaseHasAQuorumAndReportsItsOwner) {
  World world;
  Client& holder = world.client(2);
  const Outcome held = try_once(world, holder);
  world.settle_for(2s);
  const Outcome outcome = try_once(world, world.client(3));
  EXPECT_EQ(why_of(outcome), Why::busy);
  ASSERT_TRUE(outcome.error().holder);
  EXPECT_EQ(outcome.error().holder->id, held->id);
  EXPECT_EQ(outcome.error().holder->age, 2s);
  EXPECT_EQ(outcome.error().holder->remaining, 8s);
  EXPECT_FALSE(outcome.error().goes_first);
}

TEST(Attempt, IsMaybeBusyWhenASilentServerCouldMakeTheQuorumOfAnother) {
  World world;
  Client& holder = world.client(2);
  ASSERT_TRUE(try_once(world, holder));
  world.settle_for(10ms);
  Client& client = world.client(3);
  world.store(1).drop(resource());
  client.server(2).fate = silence;
  EXPECT_EQ(why_of(try_once(world, client)), Why::maybe_busy);
}

TEST(Attempt, IsBusyWhenASilentServerCouldMakeTheQuorumOfAForeignLock) {
  World world;
  Client& client = world.client();
  world.store(0).hold_foreign(resource(), "theirs", 60s);
  client.server(2).fate = silence;
  EXPECT_EQ(why_of(try_once(world, client)), Why::busy);
}

TEST(Attempt, IsSplitWhenNoneCanHaveAQuorumAndTheSmallestGoesFirst) {
  for (const std::size_t servers : {2U, 4U}) {
    for (const auto& [theirs, goes_first] : {std::pair{"zzz", true}, std::pair{"!", false}}) {
      World world(servers);
      for (std::size_t i = 0; i < servers / 2; ++i)
        world.store(i).hold_foreign(resource(), theirs, 60s);
      const Outcome outcome = try_once(world, world.client());
      EXPECT_EQ(why_of(outcome), Why::split);
      EXPECT_EQ(outcome.error().goes_first, goes_first) << theirs;
      world.settle_for(5s);
      EXPECT_EQ(world.stores_in_use(resource()), servers / 2);
    }
  }
}

TEST(Attempt, DoesNotGoFirstWithoutAnyVote) {
  World world;
  for (std::size_t i = 0; i < 3; ++i)
    world.store(i).hold_foreign(resource(), "other" + std::to_string(i), 60s);
  const Outcome outcome = try_once(world, world.client());
  EXPECT_EQ(why_of(outcome), Why::split);
  EXPECT_FALSE(outcome.error().goes_first);
}

TEST(Attempt, EndsAtOnceWhenInterruptedAndTakesEverythingBack) {
  World world;
  Client& client = world.client();
  client.server(0).fate = ghost;
  client.server(1).fate.request = 300ms;
  world.in(100ms, [&] { client.interrupt.raise(); });
  EXPECT_EQ(why_of(try_once(world, client)), Why::interrupted);
  EXPECT_EQ(world.since_start(), 100ms);
  EXPECT_EQ(taken_back(client), (std::vector<std::size_t>{0, 1, 2}));
  expect_no_ghosts(world);
}

TEST(Attempt, AsksNoServerWhenItWasInterruptedBefore) {
  World world;
  Client& client = world.client();
  client.interrupt.raise();
  EXPECT_EQ(why_of(try_once(world, client)), Why::interrupted);
  for (const AskedServer* server : client.servers) EXPECT_TRUE(server->log().empty());
}

TEST(Attempt, AsksEveryServerOnce) {
  World world(5);
  Client& client = world.client();
  client.server(4).fate = silence;
  client.server(3).fate.reply = 100ms;
  ASSERT_TRUE(try_once(world, client));
  world.settle_for(2s);
  for (const AskedServer* server : client.servers)
    EXPECT_EQ(server->asked(Question::acquire), std::vector{world.now() - 2s});
}

TEST(Attempt, RemembersWhichServersAnswered) {
  World world;
  Client& client = world.client();
  client.server(0).fate = out_of_memory;
  client.server(1).fate = {.reply = 100ms};
  client.server(2).fate = silence;
  ASSERT_FALSE(try_once(world, client));
  EXPECT_TRUE(client.server_set.answered(0));
  EXPECT_TRUE(client.server_set.answered(1));
  EXPECT_FALSE(client.server_set.answered(2));
}

}  // namespace
}  // namespace redlock::unit
