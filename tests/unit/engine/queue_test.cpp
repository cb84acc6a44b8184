// Waiters: in which order they are served, what becomes of those that end or stop, and what all of
// it costs the servers (PROTOCOL Q).
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <numeric>
#include <random>

#include "engine/dismissal.hpp"
#include "engine/held_lease.hpp"
#include "engine/waiter.hpp"
#include "world.hpp"

namespace redlock::unit {
namespace {

using namespace std::chrono_literals;

constexpr WaitPolicy for_hours{.wait = std::nullopt, .unavailable_wait = 1h, .retry_delay = 100ms};

/// All clients that want the lock in a test, numbered in order of arrival.
class Crowd {
 public:
  explicit Crowd(std::size_t stores) : world(stores) {}

  struct Member {
    Client& client;
    AcquireOrder wanted;
    std::optional<Lease> lease;
    std::optional<Instant> granted;
    bool ended = false;  ///< gave up
    std::optional<AttemptFailure> why{};
  };

  /// A client that begins to wait now.
  Member& comes(WaitPolicy policy = for_hours, Mode mode = {}, Duration ttl_length = 30s,
                const std::string& host = "here", bool supersedes = false) {
    AcquireOrder wanted = order(ttl_length);
    wanted.mode = mode;
    if (supersedes) wanted.supersession = std::make_shared<Supersession>();
    wanted.owner.command = std::to_string(members.size());
    wanted.owner.host = host;
    wanted.owner.slots = mode.slots;
    wanted.owner.take = mode.take;
    return comes(policy, wanted);
  }

  /// The same, with an order that a client had before.
  Member& comes(WaitPolicy policy, const AcquireOrder& wanted) {
    Client& client = world.client(1000 + members.size());
    Member& member = members.emplace_back(Member{client, wanted, {}, {}});
    world.start([this, &member, policy, number = members.size() - 1]() -> asio::awaitable<void> {
      Waiter waiter(member.client.server_set, member.wanted, policy, member.client.interrupt);
      for (;;) {
        const auto lease = co_await waiter.next();
        if (lease) {
          member.lease = *lease;
          member.granted = world.now();
          served.push_back(number);
          co_return;
        }
        if (lease.error().final) {
          member.ended = true;
          member.why = lease.error().failure;
          co_return;
        }
      }
    });
    return member;
  }

  /// A client that supersedes older ones of its kind.
  Member& supersedes(WaitPolicy policy = for_hours) {
    return comes(policy, {}, 30s, "host" + std::to_string(members.size()), true);
  }

  /// A client of this class.
  Member& comes_with_priority(unsigned priority) {
    AcquireOrder wanted = order(30s);
    wanted.owner.command = std::to_string(members.size());
    wanted.owner.priority = priority;
    return comes(for_hours, wanted);
  }

  /// `stop --waiting`, at the servers that `client` reaches.
  void dismiss_all(Client& client) {
    const StopRequest by{.host = "web1", .user = "ops", .reason = "bad commit"};
    (void)world.run(dismiss_waiters(client.server_set, resource(), by));
  }

  /// A client that waits only if fewer than so many others do.
  Member& comes_bounded(std::size_t max_waiting) {
    AcquireOrder wanted = order(30s);
    wanted.owner.command = std::to_string(members.size());
    wanted.max_waiting = max_waiting;
    return comes(for_hours, wanted);
  }

  /// The numbers of those that neither hold the lock nor gave up.
  [[nodiscard]] std::vector<std::size_t> waiting() {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!member(i).ended && !member(i).granted) numbers.push_back(i);
    }
    return numbers;
  }

  /// So many, each in the queue before the next one comes.
  void come(std::size_t many, Mode mode = {}) {
    for (std::size_t i = 0; i < many; ++i) {
      comes(for_hours, mode);
      world.settle_for(20ms);
    }
  }

  /// The same, each from a host of its own; or all from this one.
  void come_from_elsewhere(std::size_t many, const std::string& host = "") {
    for (std::size_t i = 0; i < many; ++i) {
      comes(for_hours, {}, 30s, host.empty() ? "host" + std::to_string(members.size()) : host);
      world.settle_for(20ms);
    }
  }

  Member& member(std::size_t number) {
    return *std::next(members.begin(), static_cast<std::ptrdiff_t>(number));
  }

  /// `expire_in`: it leaves its lease to end by then.
  void releases(Member& member, Duration expire_in = {}) {
    const Lease lease = *member.lease;
    member.lease.reset();
    world.start([&client = member.client, lease, expire_in]() -> asio::awaitable<void> {
      HeldLease held(client.server_set, lease.resource, lease.token, lease.fence, lease.hold);
      (void)co_await held.release(/*by_hand=*/false, expiring_in(expire_in));
    });
  }

  /// As with kill -9: nothing more is sent, and its connections end.
  static void dies(Member& member) { member.client.die(); }

  /// As with SIGSTOP: nothing more is sent, but it stays connected.
  static void stops(Member& member) { member.client.stop(); }

  /// Until that many were served, at most for `limit`.
  void wait_for(std::size_t many, Duration limit) {
    const Instant end = world.now() + limit;
    while (served.size() < many && world.now() < end) world.settle_for(1ms);
  }

  /// The one served last releases to the next, and so on; those in `skipped` are dead or stopped.
  /// The longest time between a release and the next grant.
  Duration hand_on_to_all(const std::vector<std::size_t>& skipped = {}) {
    Duration longest{};
    while (served.size() + skipped.size() < members.size()) {
      const std::size_t before = served.size();
      const Instant released = world.now();
      if (before > 0) releases(member(served.back()));
      wait_for(before + 1, 60s);
      if (served.size() == before) break;
      longest = std::max(longest, world.now() - released);
    }
    return longest;
  }

  [[nodiscard]] std::size_t questions_to(std::size_t store) {
    std::size_t all = 0;
    for (const Member& one : members) all += one.client.server(store).log().size();
    return all;
  }

  World world;
  std::list<Member> members;
  std::vector<std::size_t> served;
};

std::vector<std::size_t> up_to(std::size_t end, const std::vector<std::size_t>& without = {}) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < end; ++i) {
    if (std::ranges::find(without, i) == without.end()) numbers.push_back(i);
  }
  return numbers;
}

constexpr std::size_t many = 50;

TEST(Queue, ServesFiftyInTheOrderInWhichTheyCameOnOneServer) {
  Crowd crowd(1);
  crowd.come(many);
  crowd.hand_on_to_all();
  EXPECT_EQ(crowd.served, up_to(many));
}

TEST(Queue, ServesFiftyInTheOrderInWhichTheyCameOnFiveServersOfWhichTwoAreDead) {
  Crowd crowd(5);
  crowd.world.server(1).freeze();
  crowd.world.server(4).freeze();
  for (std::size_t i = 0; i < many; ++i) {
    crowd.comes();
    crowd.world.settle_for(2 * server_timeout);
  }
  crowd.hand_on_to_all();
  EXPECT_EQ(crowd.served, up_to(many));
}

TEST(Queue, KeepsItsOrderAlthoughTheServersClocksDisagree) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    Crowd crowd(5);
    std::mt19937_64 random(seed);  // NOLINT: reproducible on purpose
    for (std::size_t i = 0; i < 5; ++i)
      crowd.world.server(i).step_wall(Milliseconds(static_cast<int>(random() % 401) - 200));
    for (std::size_t i = 0; i < 12; ++i) {
      Client& client = crowd.comes().client;
      for (AskedServer* server : client.servers) {
        server->fate = {.request = std::chrono::microseconds(random() % 3000),
                        .reply = std::chrono::microseconds(random() % 3000)};
      }
      crowd.world.settle_for(40ms);
    }
    crowd.hand_on_to_all();
    EXPECT_EQ(crowd.served, up_to(12)) << seed;
  }
}

TEST(Queue, PassesOverAHundredDeadInOneStep) {
  Crowd crowd(1);
  crowd.come(102);
  std::vector<std::size_t> dead(100);
  std::iota(dead.begin(), dead.end(), 1);
  for (const std::size_t number : dead) Crowd::dies(crowd.member(number));
  EXPECT_LE(crowd.hand_on_to_all(dead), 5ms);
  EXPECT_EQ(crowd.served, up_to(102, dead));
}

TEST(Queue, PassesOverRandomDeadOnFiveServers) {
  Crowd crowd(5);
  crowd.come(30);
  std::mt19937_64 random(7);  // NOLINT: reproducible on purpose
  std::vector<std::size_t> dead;
  for (std::size_t i = 1; i < 30; ++i) {
    if (random() % 2 == 0) dead.push_back(i);
  }
  for (const std::size_t number : dead) Crowd::dies(crowd.member(number));
  EXPECT_LE(crowd.hand_on_to_all(dead), 50ms);
  EXPECT_EQ(crowd.served, up_to(30, dead));
}

TEST(Queue, EachStoppedOneDelaysTheOthersByOneAndAHalfSecondsAtMost) {
  for (const bool elsewhere : {false, true}) {
    for (const std::size_t stores : {1U, 3U}) {
      for (const std::size_t stopped : {1U, 2U, 3U, 6U}) {
        Crowd crowd(stores);
        if (elsewhere) {
          crowd.come_from_elsewhere(stopped + 2);
        } else {
          crowd.come(stopped + 2);
        }
        std::vector<std::size_t> skipped(stopped);
        std::iota(skipped.begin(), skipped.end(), 1);
        for (const std::size_t number : skipped) Crowd::stops(crowd.member(number));
        const Duration longest = crowd.hand_on_to_all(skipped);
        EXPECT_GE(longest, 1s) << "it had its chance";
        EXPECT_LE(longest, stopped * 1500ms) << stores << " stores, " << stopped << " stopped";
        EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, stopped + 1}));
      }
    }
  }
}

TEST(Queue, AHostThatStoppedDelaysTheOthersByThreeSecondsAtMostHoweverManyWaitThere) {
  for (const std::size_t stores : {1U, 3U}) {
    for (const std::size_t behind : {0U, 20U}) {
      Crowd crowd(stores);
      crowd.come(1);
      crowd.come_from_elsewhere(20, "stopped");
      crowd.come(1);
      crowd.come_from_elsewhere(behind, "stopped");
      for (std::size_t number = 1; number < crowd.members.size(); ++number) {
        if (number != 21) Crowd::stops(crowd.member(number));
      }
      crowd.releases(crowd.member(0));
      const Instant released = crowd.world.now();
      crowd.wait_for(2, 60s);
      EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 21}));
      EXPECT_LE(crowd.world.now() - released, 3s) << stores;
    }
  }
}

TEST(Queue, AStandbyDoesNotPollALockThatIsTaken) {
  for (const std::size_t stores : {1U, 5U}) {
    Crowd crowd(stores);
    crowd.come_from_elsewhere(200);
    const std::size_t before = crowd.questions_to(0);
    crowd.releases(crowd.member(0));
    crowd.world.settle_for(1500ms);
    ASSERT_EQ(crowd.served, up_to(2));
    // Of themselves some 200 poll every 15 s.
    EXPECT_LE(crowd.questions_to(0) - before, (stores == 1 ? 4U : 8U) + 20U);
    const auto polls_of = [&](std::size_t number) {
      const auto polls = crowd.member(number).client.server(0).asked(Question::acquire);
      return std::ranges::count_if(polls,
                                   [&](Instant when) { return when > *crowd.member(1).granted; });
    };
    EXPECT_EQ(polls_of(3) + polls_of(199), 0) << stores;
    // The new first learns when the lease ends.
    EXPECT_EQ(polls_of(2), 1) << stores;
  }
}

TEST(Queue, TheSecondFindsAForeignLockFreeWhenTheFirstIsDead) {
  Crowd crowd(1);
  crowd.world.store(0).hold_foreign(resource(), "theirs", std::nullopt);
  crowd.come(2);
  Crowd::dies(crowd.member(0));
  crowd.world.settle_for(3s);
  crowd.world.store(0).drop(resource());
  const Instant dropped = crowd.world.now();
  crowd.wait_for(1, 5s);
  ASSERT_EQ(crowd.served, std::vector<std::size_t>{1});
  EXPECT_LE(crowd.world.now() - dropped, 2s);
}

TEST(Queue, ASubscriptionThatTheServerForgotIsMadeAnew) {
  Crowd crowd(1);
  crowd.come(3);
  // The client is not told; a waiter that is granted the lock notifies none, and the next learns
  // that it was passed over.
  crowd.world.server(0).forget_subscriptions(crowd.member(1).client.host);
  crowd.releases(crowd.member(0));
  crowd.wait_for(2, 5s);
  ASSERT_EQ(crowd.served.back(), 2U);
  crowd.world.settle_for(20s);  // it polls, and subscribes again
  crowd.releases(crowd.member(2));
  const Instant released = crowd.world.now();
  crowd.wait_for(3, 5s);
  ASSERT_EQ(crowd.served, (std::vector<std::size_t>{0, 2, 1}));
  EXPECT_LE(crowd.world.now() - released, 100ms);
}

// It does not go on believing that it will be notified until its next poll, 15 s later.
TEST(Queue, AWaiterLearnsAtOnceThatTheServersAreGone) {
  Crowd crowd(3);
  crowd.comes(for_hours, {}, 5min);
  crowd.world.settle_for(20ms);
  WaitPolicy policy = for_hours;
  policy.unavailable_wait = 4s;
  Crowd::Member& waiter = crowd.comes(policy);
  crowd.world.settle_for(5s);

  // A minority changes nothing: a quorum can notify it.
  const std::size_t asked = waiter.client.server(2).log().size();
  crowd.world.server(0).crash(/*loses_everything=*/false);
  crowd.world.settle_for(5s);
  EXPECT_EQ(waiter.client.server(2).log().size(), asked);

  crowd.world.server(1).crash(/*loses_everything=*/false);
  crowd.world.settle_for(3s);
  EXPECT_FALSE(waiter.ended);
  crowd.world.settle_for(3s);
  EXPECT_TRUE(waiter.ended);
}

TEST(Queue, ASubscriptionIsMadeAnewAlsoWhereTheSilenceShowsAfterTheDecision) {
  Crowd crowd(3);
  crowd.come(2);
  crowd.world.server(2).freeze();
  const AskedServer& frozen = crowd.member(1).client.server(2);
  ASSERT_EQ(frozen.asked(Question::subscribe).size(), 1U);
  crowd.world.settle_for(20s);  // it polls, and the two others decide
  EXPECT_GE(frozen.asked(Question::subscribe).size(), 2U);
}

TEST(Queue, AnAttemptThatComesAfterTheGrantQueuesNoWaiterAgain) {
  Crowd crowd(3);
  crowd.come(1);
  Client& late = crowd.comes().client;
  late.server(2).fate_for[Question::acquire] = {.request = 3s};
  crowd.world.settle_for(2 * server_timeout);
  late.server(2).fate_for.clear();
  crowd.releases(crowd.member(0));
  crowd.wait_for(2, 100ms);
  ASSERT_EQ(crowd.served, up_to(2));
  crowd.world.settle_for(5s);
  EXPECT_TRUE(crowd.world.store(2).waiting(resource()).empty());
}

TEST(Queue, WhoWasStoppedComesBackToItsOldPosition) {
  Crowd crowd(3);
  crowd.come(5);
  Crowd::stops(crowd.member(1));
  crowd.releases(crowd.member(0));
  crowd.wait_for(2, 5s);
  ASSERT_EQ(crowd.served.back(), 2U);
  crowd.member(1).client.go_on();
  crowd.world.settle_for(30s);  // it polls again
  crowd.hand_on_to_all();
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 2, 1, 3, 4}));
}

TEST(Queue, AHolderThatEndsWithoutAReleaseStallsNoneBeyondItsLease) {
  for (const std::size_t stores : {1U, 3U}) {
    Crowd crowd(stores);
    crowd.comes(for_hours, {}, 10s);
    crowd.world.settle_for(20ms);
    crowd.come(3);
    const Instant over = *crowd.member(0).granted + 10s;
    Crowd::dies(crowd.member(0));
    crowd.wait_for(2, 15s);
    ASSERT_EQ(crowd.served, (std::vector<std::size_t>{0, 1}));
    EXPECT_LE(*crowd.member(1).granted - over, 100ms);
  }
}

TEST(Queue, AHolderThatEndsTogetherWithTheFirstTwoStallsTheThirdByTwoSecondsAtMost) {
  Crowd crowd(3);
  crowd.comes(for_hours, {}, 10s);
  crowd.world.settle_for(20ms);
  crowd.come(4);
  const Instant over = *crowd.member(0).granted + 10s;
  for (const std::size_t number : {0U, 1U, 2U}) Crowd::dies(crowd.member(number));
  crowd.wait_for(2, 30s);
  ASSERT_EQ(crowd.served, (std::vector<std::size_t>{0, 3}));
  EXPECT_LE(*crowd.member(3).granted - over, 2s);
}

TEST(Queue, TheFirstLivingWaiterIsNotifiedThatALeaseEndsSooner) {
  for (const std::size_t stores : {1U, 3U}) {
    Crowd crowd(stores);
    crowd.come(4);
    Crowd::dies(crowd.member(1));
    Crowd::dies(crowd.member(2));
    crowd.world.settle_for(100ms);
    const Instant released = crowd.world.now();
    crowd.releases(crowd.member(0), 300ms);
    crowd.wait_for(2, 60s);
    EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 3})) << stores;
    EXPECT_LE(crowd.world.now() - released, 350ms) << stores;
  }
}

TEST(Queue, TheNewFirstWaiterLearnsWhenTheLeaseEndsThoughTheNextInQueueIsDead) {
  Crowd crowd(1);
  crowd.comes(for_hours, {}, 10s);
  crowd.world.settle_for(20ms);
  crowd.comes({.wait = 1s, .unavailable_wait = 1h, .retry_delay = 100ms});
  crowd.world.settle_for(20ms);
  crowd.come(2);
  Crowd::dies(crowd.member(2));
  Crowd::dies(crowd.member(0));
  crowd.wait_for(2, 60s);
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 3}));
  EXPECT_LE(*crowd.member(3).granted - *crowd.member(0).granted, 10s + 100ms);
}

TEST(Queue, WhoIsNotifiedInVainByOneServerTakesItsTime) {
  Crowd crowd(3);
  crowd.come(2);
  const auto polls = [&] {
    return crowd.member(1).client.server(2).asked(Question::acquire).size();
  };
  const std::size_t before = polls();
  for (Duration at{}; at < 2s; at += 5ms)
    crowd.world.in(at, [&] { crowd.world.server(2).publish_to_all("granted"); });
  crowd.world.settle_for(2s);
  EXPECT_GT(polls() - before, 10U);
  EXPECT_LE(polls() - before, 60U);
}

TEST(Queue, AWaiterThatGivesUpBlocksNone) {
  Crowd crowd(3);
  crowd.comes();
  crowd.world.settle_for(20ms);
  crowd.comes({.wait = 500ms, .unavailable_wait = 1s, .retry_delay = 100ms});
  crowd.world.settle_for(20ms);
  crowd.comes();
  crowd.comes().client.interrupt.raise();
  crowd.world.settle_for(1s);
  EXPECT_TRUE(crowd.member(1).ended);
  EXPECT_TRUE(crowd.member(3).ended);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(crowd.world.store(i).waiting(resource()), std::vector<std::string>{"2"}) << i;
  crowd.releases(crowd.member(0));
  crowd.wait_for(2, 5s);
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 2}));
  EXPECT_TRUE(crowd.world.store(0).waiting(resource()).empty());
}

TEST(Queue, ANewcomerThatDoesNotWaitIsNotLetInBeforeThoseWhoDo) {
  Crowd crowd(1);
  crowd.come(2);
  Crowd::stops(crowd.member(1));  // it is notified, and does not come
  crowd.releases(crowd.member(0));
  crowd.world.settle_for(10ms);
  Crowd::Member& hasty = crowd.comes({.wait = 0s, .unavailable_wait = 0s, .retry_delay = 100ms});
  crowd.world.settle_for(10ms);
  EXPECT_TRUE(hasty.ended);
  crowd.world.settle_for(2s);
  EXPECT_TRUE(crowd.world.store(0).is_free(resource()));
  EXPECT_TRUE(crowd.comes({.wait = 0s, .unavailable_wait = 0s, .retry_delay = 100ms})
                  .client.servers.size() == 1);
  crowd.world.settle_for(10ms);
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 3}));
}

TEST(Queue, AWaiterThatReachesOnlyAMinorityStallsNone) {
  Crowd crowd(3);
  crowd.come(2);
  // The second in the queue is cut off from two servers, and stays first at the third.
  for (const std::size_t i : {0U, 1U}) crowd.member(1).client.server(i).fate.silent = true;
  crowd.come(2);
  crowd.world.settle_for(60s);
  EXPECT_LE(crowd.hand_on_to_all({1}), 2s);
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 2, 3}));
}

TEST(Queue, TwoGroupsThatComeTogetherNeverLiveLock) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    Crowd crowd(3);
    std::mt19937_64 random(seed);  // NOLINT: reproducible on purpose
    for (std::size_t i = 0; i < 10; ++i) {
      Client& client = crowd.comes().client;
      for (std::size_t store = 0; store < 3; ++store) {
        // Each group is nearer to another server.
        const bool near = store == i % 2;
        client.server(store).fate = {
            .request = std::chrono::microseconds(near ? 100 : 2000 + random() % 1000),
            .reply = 100us};
      }
    }
    crowd.wait_for(1, 5s);
    ASSERT_EQ(crowd.served.size(), 1U) << seed;
    crowd.world.settle_for(200ms);  // until all stand in the queue
    for (std::size_t i = 1; i < 10; ++i) {
      const std::size_t before = crowd.questions_to(0);
      crowd.releases(crowd.member(crowd.served.back()));
      crowd.wait_for(i + 1, 2s);
      ASSERT_EQ(crowd.served.size(), i + 1) << seed;  // each release is followed by a grant
      EXPECT_LE(crowd.questions_to(0) - before, 12U) << seed;
    }
  }
}

TEST(Queue, AHandOverCostsTheSameHoweverManyWait) {
  for (const std::size_t stores : {1U, 5U}) {
    std::vector<std::size_t> costs;
    for (const std::size_t waiting : {2U, 200U}) {
      Crowd crowd(stores);
      crowd.come(waiting + 1);
      const std::size_t before = crowd.questions_to(0);
      crowd.releases(crowd.member(0));
      crowd.wait_for(2, 5s);
      costs.push_back(crowd.questions_to(0) - before);
    }
    EXPECT_EQ(costs[0], costs[1]) << stores;
    EXPECT_LE(costs[1], stores == 1 ? 4U : 8U);
  }
}

TEST(Queue, IdleWaitersCostLittleHoweverShortTheLease) {
  for (const Duration length : {Duration(30s), Duration(2s)}) {
    for (const std::size_t waiting : {3U, 30U}) {
      Crowd crowd(1);
      crowd.comes(for_hours, {}, length);
      crowd.world.settle_for(20ms);
      bool over = false;
      crowd.world.start([&crowd, &over, length]() -> asio::awaitable<void> {
        const Lease lease = *crowd.member(0).lease;
        Client& client = crowd.member(0).client;
        HeldLease held(client.server_set, lease.resource, lease.token, lease.fence);
        while (!over) {
          (void)co_await held.extend(ttl(length));
          co_await sleep_until(client.process, crowd.world.now() + length / 3);
        }
      });
      crowd.come(waiting);
      crowd.world.settle_for(20s);
      std::size_t before = 0;
      std::size_t after = 0;
      for (auto& member : crowd.members)
        before += &member == &crowd.member(0) ? 0 : member.client.server(0).log().size();
      crowd.world.settle_for(60s);
      for (auto& member : crowd.members)
        after += &member == &crowd.member(0) ? 0 : member.client.server(0).log().size();
      EXPECT_LE(static_cast<double>(after - before) / 60, 2.5 + static_cast<double>(waiting) / 15)
          << waiting;
      over = true;
      crowd.world.settle_for(length);
    }
  }
}

TEST(Queue, AForeignHolderIsFoundByTheFirstAlone) {
  Crowd crowd(1);
  crowd.world.store(0).hold_foreign(resource(), "theirs", std::nullopt);
  crowd.come(4);
  const auto polls = [&](std::size_t number) {
    return crowd.member(number).client.server(0).asked(Question::acquire).size();
  };
  crowd.world.settle_for(10s);
  EXPECT_GE(polls(0), 60U);
  for (const std::size_t number : {1U, 2U, 3U}) EXPECT_LE(polls(number), 10U) << number;
  crowd.world.store(0).drop(resource());
  const Instant dropped = crowd.world.now();
  crowd.wait_for(1, 5s);
  ASSERT_EQ(crowd.served, std::vector<std::size_t>{0});
  EXPECT_LE(crowd.world.now() - dropped, 151ms);
}

TEST(Queue, WhoMayNotSubscribePollsInsteadAndKeepsItsPosition) {
  Crowd crowd(1);
  crowd.come(1);
  for (int i = 0; i < 3; ++i) {
    crowd.comes().client.host.may_subscribe = false;
    crowd.world.settle_for(20ms);
  }
  crowd.world.settle_for(10s);
  EXPECT_EQ(crowd.world.store(0).waiting(resource()), (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_LE(crowd.hand_on_to_all(), 600ms);
  EXPECT_EQ(crowd.served, up_to(4));
}

TEST(Queue, NothingIsLeftInItForEver) {
  Crowd crowd(1);
  crowd.come(3);
  for (const std::size_t number : {0U, 1U, 2U}) Crowd::dies(crowd.member(number));
  crowd.world.settle_for(60s);
  EXPECT_TRUE(crowd.world.store(0).waiting(resource()).empty());
}

// --- shared locks and slots ---

const Mode shared{true, 0};

void expect_superseded(const Crowd::Member& member, const std::string& by) {
  ASSERT_TRUE(member.ended);
  EXPECT_EQ(member.why->why, AcquireDecision::superseded);
  ASSERT_TRUE(member.why->queue.superseded_by.has_value());
  EXPECT_EQ(member.why->queue.superseded_by->command, by);
}

TEST(Supersede, TheOlderOfTwoGivesUpAtOnceAndTheHolderIsLeftAlone) {
  for (const std::size_t servers : {1U, 3U, 4U, 5U}) {
    Crowd crowd(servers);
    crowd.come(1);
    crowd.supersedes();
    crowd.world.settle_for(1s);
    EXPECT_FALSE(crowd.member(1).ended);
    crowd.supersedes();
    crowd.world.settle_for(30ms);
    expect_superseded(crowd.member(1), "2");
    EXPECT_TRUE(crowd.member(0).lease.has_value());
    crowd.releases(crowd.member(0));
    crowd.wait_for(2, 100ms);
    EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 2})) << servers;
  }
}

TEST(Supersede, OfAHundredThatComeTogetherOneStays) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Crowd crowd(3);
    crowd.come(1);
    std::mt19937_64 random(seed);  // NOLINT: reproducible on purpose
    for (std::size_t i = 0; i < 100; ++i) {
      Client& client = crowd.supersedes().client;
      for (AskedServer* server : client.servers) {
        server->fate = {.request = std::chrono::microseconds(random() % 20'000),
                        .reply = std::chrono::microseconds(random() % 20'000)};
      }
      crowd.world.settle_for(std::chrono::microseconds(random() % 3000));
    }
    crowd.world.settle_for(5s);
    EXPECT_EQ(crowd.waiting().size(), 1U) << seed;
    EXPECT_EQ(crowd.served, std::vector<std::size_t>{0}) << "none started out of turn";
    crowd.releases(crowd.member(0));
    crowd.wait_for(2, 1s);
    EXPECT_EQ(crowd.served.size(), 2U) << seed;
  }
}

TEST(Supersede, AHandOverCostsTheSameHoweverManyGaveUp) {
  const auto cost = [](std::size_t superseded) {
    Crowd crowd(3);
    crowd.come(1);
    for (std::size_t i = 0; i <= superseded; ++i) {
      crowd.supersedes();
      crowd.world.settle_for(20ms);
    }
    crowd.world.settle_for(1s);
    const std::size_t before = crowd.questions_to(0);
    crowd.releases(crowd.member(0));
    crowd.wait_for(2, 1s);
    EXPECT_EQ(crowd.served.back(), superseded + 1);
    return crowd.questions_to(0) - before;
  };
  EXPECT_EQ(cost(60), cost(1));
}

TEST(Supersede, OthersKeepTheirPositions) {
  Crowd crowd(3);
  crowd.come(2);
  crowd.supersedes();
  crowd.world.settle_for(20ms);
  crowd.come(1);
  crowd.supersedes();
  crowd.world.settle_for(100ms);
  expect_superseded(crowd.member(2), "4");
  EXPECT_EQ(crowd.waiting(), (std::vector<std::size_t>{1, 3, 4}));
  for (int i = 0; i < 3; ++i) {
    crowd.releases(crowd.member(crowd.served.back()));
    crowd.wait_for(crowd.served.size() + 1, 1s);
  }
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 1, 3, 4}));
}

TEST(Supersede, OneThatReachesOnlyAMinoritySupersedesNone) {
  Crowd crowd(3);
  crowd.come(1);
  crowd.supersedes();
  crowd.world.settle_for(100ms);
  Crowd::Member& cut_off =
      crowd.supersedes({.wait = {}, .unavailable_wait = 1s, .retry_delay = 100ms});
  // It gets a ticket from all of them, and then shows it at one.
  for (AskedServer* server : cut_off.client.servers) server->fate = {.reply = 10ms};
  crowd.world.in(5ms, [&] {
    for (const std::size_t i : {1U, 2U}) cut_off.client.server(i).fate = {.silent = true};
  });
  crowd.world.settle_for(100ms);
  EXPECT_TRUE(crowd.world.store(0).waiting(resource()).empty()) << "the older one left there";
  crowd.world.settle_for(10s);
  EXPECT_TRUE(cut_off.ended);
  EXPECT_FALSE(crowd.member(1).ended);
  crowd.releases(crowd.member(0));
  crowd.wait_for(2, 1s);
  EXPECT_EQ(crowd.served.back(), 1U);
}

TEST(Supersede, OneThatLeftTheQueueGivesUpAlsoWhenTheNewerOneHasEnded) {
  Crowd crowd(3);
  crowd.come(1);
  Crowd::Member& cut_off = crowd.supersedes();
  crowd.world.settle_for(100ms);
  cut_off.client.every_server({.silent = true});
  crowd.supersedes();
  crowd.world.settle_for(100ms);
  crowd.releases(crowd.member(0));
  crowd.wait_for(2, 5s);
  ASSERT_EQ(crowd.served.back(), 2U);
  crowd.releases(crowd.member(2));
  crowd.world.settle_for(10s);  // for two rounds without a quorum
  EXPECT_FALSE(cut_off.ended);
  cut_off.client.every_server({});
  crowd.world.settle_for(20s);
  expect_superseded(cut_off, "2");
  EXPECT_EQ(crowd.served.size(), 2U);
}

void expect_dismissed(const Crowd::Member& member) {
  ASSERT_TRUE(member.ended);
  EXPECT_EQ(member.why->why, AcquireDecision::dismissed);
  ASSERT_TRUE(member.why->queue.dismissed_by.has_value());
  EXPECT_EQ(member.why->queue.dismissed_by->reason, "bad commit");
}

TEST(Dismissal, EndsAllWaitsAtOnceAndNewcomersWaitAndTheHolderIsLeftAlone) {
  for (const std::size_t servers : {1U, 3U, 4U, 5U}) {
    Crowd crowd(servers);
    crowd.come(4);
    Crowd::stops(crowd.member(2));
    crowd.dismiss_all(crowd.world.client(1));
    crowd.world.settle_for(100ms);
    expect_dismissed(crowd.member(1));
    expect_dismissed(crowd.member(3));
    EXPECT_FALSE(crowd.member(2).ended);
    crowd.come(1);
    EXPECT_TRUE(crowd.member(0).lease.has_value());
    crowd.releases(crowd.member(0));
    crowd.wait_for(2, 5s);
    EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 4})) << servers;
    crowd.releases(crowd.member(4));
    crowd.world.settle_for(1min);
    crowd.member(2).client.go_on();
    crowd.world.settle_for(20s);
    expect_dismissed(crowd.member(2));
    EXPECT_EQ(crowd.served.size(), 2U) << "the lock was free when it went on";
  }
}

TEST(Dismissal, ReachesOneThatHasLeftTheQueueWhenItReturns) {
  Crowd crowd(3);
  crowd.come(1);
  Crowd::Member& cut_off = crowd.comes();
  crowd.world.settle_for(100ms);
  cut_off.client.every_server({.silent = true});
  crowd.world.settle_for(10s);  // for two rounds without a quorum
  crowd.dismiss_all(crowd.world.client(1));
  crowd.releases(crowd.member(0));
  crowd.world.settle_for(10s);
  EXPECT_FALSE(cut_off.ended);
  cut_off.client.every_server({});
  crowd.world.settle_for(20s);
  expect_dismissed(cut_off);
  EXPECT_EQ(crowd.served.size(), 1U);
}

TEST(Dismissal, AtAMinorityEndsNoWait) {
  Crowd crowd(3);
  crowd.come(3);
  Client& client = crowd.world.client(1);
  // It learns the ticket of all of them, and then tells one.
  for (AskedServer* server : client.servers) server->fate = {.reply = 10ms};
  crowd.world.in(5ms, [&] {
    for (const std::size_t i : {1U, 2U}) client.server(i).fate = {.silent = true};
  });
  crowd.dismiss_all(client);
  EXPECT_TRUE(crowd.world.store(0).waiting(resource()).empty()) << "they left there";
  crowd.world.settle_for(5s);
  EXPECT_EQ(crowd.waiting(), (std::vector<std::size_t>{1, 2}));
  crowd.hand_on_to_all();
  EXPECT_EQ(crowd.served, up_to(3));
}

TEST(Priority, HigherClassesComeFirstAndWithinAClassTheFirst) {
  for (const std::size_t servers : {1U, 3U}) {
    Crowd crowd(servers);
    crowd.come(1);
    for (const unsigned priority : {0U, 5U, 0U, 9U, 5U, 9U, 1U}) {
      crowd.comes_with_priority(priority);
      crowd.world.settle_for(20ms);
    }
    crowd.hand_on_to_all();
    EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 4, 6, 2, 5, 7, 1, 3})) << servers;
  }
}

TEST(Priority, OneThatComesDuringAHandOverDoesNotDelayIt) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const std::size_t servers : {1U, 3U}) {
      Crowd crowd(servers);
      std::mt19937_64 random(seed);  // NOLINT: reproducible on purpose
      crowd.come(3);
      for (int round = 0; round < 3; ++round) {
        const std::size_t before = crowd.served.size();
        crowd.releases(crowd.member(crowd.served.back()));
        crowd.world.settle_for(std::chrono::microseconds(random() % 3000));
        Client& client = crowd.comes_with_priority(5).client;
        for (AskedServer* server : client.servers)
          server->fate = {.request = std::chrono::microseconds(random() % 3000)};
        const Instant came = crowd.world.now();
        crowd.wait_for(before + 1, 5s);
        EXPECT_LT(crowd.world.now() - came, 500ms) << seed << ' ' << servers << ' ' << round;
      }
      crowd.world.settle_for(1s);
    }
  }
}

TEST(Supersede, TheNewestIsRememberedForLongerThanAnEntryLivesHoweverItGotTheLock) {
  for (const bool found_it_free : {false, true}) {
    for (const std::size_t servers : {1U, 3U}) {
      Crowd crowd(servers);
      crowd.come(1);
      Crowd::Member& stopped = crowd.supersedes();
      crowd.world.settle_for(100ms);
      Crowd::stops(stopped);
      if (found_it_free) {
        crowd.releases(crowd.member(0));
        crowd.world.settle_for(1min);
      }
      crowd.supersedes();
      crowd.world.settle_for(100ms);
      if (!found_it_free) crowd.releases(crowd.member(0));
      crowd.wait_for(2, 5s);
      ASSERT_EQ(crowd.served.back(), 2U);
      crowd.releases(crowd.member(2));
      crowd.world.settle_for(2min);
      stopped.client.go_on();
      crowd.world.settle_for(20s);
      expect_superseded(stopped, "2");
      EXPECT_EQ(crowd.served.size(), 2U) << servers;
    }
  }
}

TEST(Supersede, OneThatStoodStillForADayGivesUpByItself) {
  Crowd crowd(3);
  Crowd::Member& stopped = crowd.supersedes();
  crowd.wait_for(1, 100ms);
  crowd.supersedes();
  crowd.world.settle_for(100ms);
  Crowd::Member& waiter = crowd.member(1);
  Crowd::stops(waiter);
  crowd.releases(stopped);
  crowd.world.settle_for(25h);
  waiter.client.go_on();
  crowd.world.settle_for(20s);
  ASSERT_TRUE(waiter.ended);
  EXPECT_EQ(waiter.why->why, AcquireDecision::superseded);
  EXPECT_FALSE(waiter.why->queue.superseded_by);
  EXPECT_EQ(crowd.served.size(), 1U);
}

TEST(Supersede, OneThatWaitsAgainIsNoNewerForThat) {
  Crowd crowd(3);
  Crowd::Member& paused = crowd.supersedes();
  crowd.wait_for(1, 100ms);
  crowd.releases(paused);
  crowd.supersedes();
  crowd.wait_for(2, 1s);
  crowd.releases(crowd.member(1));
  crowd.world.settle_for(1min);
  Crowd::Member& again = crowd.comes(for_hours, paused.wanted);
  crowd.world.settle_for(1s);
  expect_superseded(again, "1");
  EXPECT_EQ(crowd.served.size(), 2U);
}

TEST(Supersede, ANewOneThatCameAfterTheEndOfAnotherIsTheNewestWhateverTheClocksShow) {
  Crowd crowd(3);
  for (std::size_t i = 0; i < 3; ++i)
    crowd.world.server(i).step_wall(Milliseconds(static_cast<int>(i) * 200));
  crowd.come(1);
  Crowd::Member& first = crowd.supersedes();
  first.client.server(0).fate.silent = true;  // its ticket is by the faster clocks
  crowd.world.settle_for(50ms);
  crowd.releases(crowd.member(0));
  crowd.wait_for(2, 2s);
  ASSERT_EQ(crowd.served.back(), 1U);
  Crowd::Member& second = crowd.supersedes();
  second.client.server(2).fate.silent = true;
  crowd.world.settle_for(2s);
  EXPECT_FALSE(second.ended);
}

void expect_full(const Crowd::Member& member, std::size_t others) {
  ASSERT_TRUE(member.ended);
  EXPECT_EQ(member.why->why, AcquireDecision::queue_full);
  EXPECT_EQ(member.why->queue.others, others);
}

TEST(BoundedQueue, KeepsOutAtOnceWhoFindsSoManyInIt) {
  for (const std::size_t servers : {1U, 3U, 4U}) {
    Crowd crowd(servers);
    crowd.come(1);
    for (std::size_t i = 0; i < 3; ++i) {
      crowd.comes_bounded(2);
      crowd.world.settle_for(20ms);
    }
    expect_full(crowd.member(3), 2);
    EXPECT_EQ(crowd.world.store(0).waiting(resource()).size(), 2U);
    crowd.releases(crowd.member(0));
    crowd.wait_for(2, 100ms);
    crowd.comes_bounded(2);
    crowd.world.settle_for(20ms);
    EXPECT_EQ(crowd.waiting(), (std::vector<std::size_t>{2, 4})) << servers;
  }
}

TEST(BoundedQueue, OfManyThatComeTogetherAsManyStayAsMay) {
  for (const std::size_t servers : {1U, 3U, 5U}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      Crowd crowd(servers);
      crowd.come(1);
      std::mt19937_64 random(seed);  // NOLINT: reproducible on purpose
      for (std::size_t i = 0; i < 30; ++i) {
        Client& client = crowd.comes_bounded(1).client;
        for (AskedServer* server : client.servers) {
          server->fate = {.request = std::chrono::microseconds(random() % 20'000),
                          .reply = std::chrono::microseconds(random() % 20'000)};
        }
        crowd.world.settle_for(std::chrono::microseconds(random() % 3000));
      }
      crowd.world.settle_for(3s);
      EXPECT_EQ(crowd.waiting().size(), 1U) << servers << " servers, seed " << seed;
    }
  }
}

// Each is the first at one of the servers.
TEST(BoundedQueue, OfThreeThatComeTogetherOneStaysWhicheverIsFirstAtEachServer) {
  Crowd crowd(3);
  crowd.come(1);
  for (std::size_t i = 0; i < 3; ++i) {
    Client& client = crowd.comes_bounded(1).client;
    for (std::size_t server = 0; server < 3; ++server) {
      client.server(server).fate_for[Question::acquire] = {
          .request = Milliseconds(1 + 2 * ((server + 3 - i) % 3))};
    }
  }
  crowd.world.settle_for(2s);
  EXPECT_EQ(crowd.waiting().size(), 1U);
}

TEST(BoundedQueue, OfThreeThatEachMissAnotherServerAsManyStayAsTheQuorumsBoundAllows) {
  for (const auto& [max_waiting, stay] : {std::pair(1U, 1U), std::pair(2U, 3U)}) {
    Crowd crowd(3);
    crowd.come(1);
    for (std::size_t i = 0; i < 3; ++i) {
      crowd.comes_bounded(max_waiting).client.server(i).fate.silent = true;
      crowd.world.settle_for(100ms);
    }
    crowd.world.settle_for(10s);
    EXPECT_EQ(crowd.waiting().size(), stay) << max_waiting;
  }
}

TEST(BoundedQueue, IsNotFilledByThoseThatWereKilled) {
  Crowd crowd(3);
  crowd.come(3);
  Crowd::dies(crowd.member(1));
  Crowd::dies(crowd.member(2));
  crowd.comes_bounded(1);
  crowd.world.settle_for(20ms);
  EXPECT_FALSE(crowd.member(3).ended);
  EXPECT_EQ(crowd.world.store(0).waiting(resource()), std::vector<std::string>{"3"});
}

TEST(BoundedQueue, KeepsNoneOutThatReturnsToIt) {
  Crowd crowd(3);
  crowd.comes(for_hours, {}, 10min);
  crowd.world.settle_for(20ms);
  crowd.comes_bounded(1);
  crowd.world.settle_for(20ms);
  for (AskedServer* server : crowd.member(1).client.servers) server->fate.silent = true;
  crowd.world.settle_for(60s);  // it has left by itself, as far as it knows
  crowd.come(1);
  for (AskedServer* server : crowd.member(1).client.servers) server->fate.silent = false;
  crowd.world.settle_for(5s);
  EXPECT_FALSE(crowd.member(1).ended);
  crowd.releases(crowd.member(0));
  crowd.wait_for(2, 1s);
  EXPECT_EQ(crowd.served, up_to(2));
}

TEST(SharedLock, LetsReadersInTogetherAndKeepsAWriterOut) {
  Crowd crowd(3);
  crowd.come(3, shared);
  EXPECT_EQ(crowd.served, up_to(3));
  Crowd::Member& writer = crowd.comes();
  crowd.world.settle_for(5s);
  EXPECT_FALSE(writer.lease);
  for (const std::size_t number : {0U, 1U, 2U}) {
    EXPECT_FALSE(writer.lease) << number;
    crowd.releases(crowd.member(number));
    crowd.world.settle_for(100ms);
  }
  EXPECT_TRUE(writer.lease);
  EXPECT_GT(writer.lease->fence, Fence());
}

TEST(SharedLock, AWaitingWriterStopsNewReadersAndIsNotStarved) {
  Crowd crowd(3);
  crowd.come(2, shared);
  crowd.come(1);
  crowd.come(3, shared);  // they come while others read, but behind the writer
  EXPECT_EQ(crowd.served, up_to(2));
  crowd.releases(crowd.member(0));
  crowd.releases(crowd.member(1));
  crowd.world.settle_for(100ms);
  EXPECT_EQ(crowd.served, up_to(3));
  crowd.releases(crowd.member(2));
  crowd.world.settle_for(200ms);
  EXPECT_EQ(crowd.served, up_to(6));  // all readers at once
}

TEST(SharedLock, AReaderThatEndsWithoutAReleaseKeepsItOnlyForItsOwnTtl) {
  Crowd crowd(3);
  crowd.comes(for_hours, shared, 5s);
  crowd.comes(for_hours, shared, 30s);
  crowd.world.settle_for(20ms);
  Crowd::Member& writer = crowd.comes();
  crowd.world.settle_for(20ms);
  Crowd::dies(crowd.member(0));
  crowd.world.settle_for(6s);
  EXPECT_FALSE(writer.lease);
  crowd.releases(crowd.member(1));
  crowd.world.settle_for(100ms);
  EXPECT_TRUE(writer.lease);
}

TEST(SharedLock, AWriterThatDiedInTheQueueBlocksReadersForTwoSecondsAtMost) {
  Crowd crowd(1);
  crowd.come(1, shared);
  crowd.come(1);
  crowd.come(2, shared);
  Crowd::dies(crowd.member(1));
  crowd.wait_for(3, 2s);
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 2, 3}));
}

TEST(SharedLock, AReaderThatReleasesLetsInWhoIsBehindADeadWriter) {
  Crowd crowd(3);
  crowd.come(2, shared);
  crowd.come(1);
  crowd.come(1, shared);
  Crowd::dies(crowd.member(2));
  crowd.world.settle_for(20ms);
  const Instant released = crowd.world.now();
  crowd.releases(crowd.member(0));
  crowd.wait_for(3, 60s);
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 1, 3}));
  EXPECT_LE(crowd.world.now() - released, 20ms);
}

TEST(SharedLock, AStoppedWriterInTheQueueKeepsReadersOutForAMoment) {
  Crowd crowd(1);
  crowd.come(1, shared);
  crowd.come(1);
  Crowd::stops(crowd.member(1));
  crowd.comes(for_hours, shared);
  crowd.wait_for(2, 4s);
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 2}));
}

TEST(Slots, AreGivenFromTheLowestOnAndInOrderOfArrival) {
  Crowd crowd(3);
  crowd.come(5, {true, 2});
  EXPECT_EQ(crowd.served, up_to(2));
  EXPECT_EQ(crowd.member(0).lease->hold.slots, Slots{0});
  EXPECT_EQ(crowd.member(1).lease->hold.slots, Slots{1});
  crowd.releases(crowd.member(0));
  crowd.world.settle_for(100ms);
  EXPECT_EQ(crowd.served, up_to(3));
  EXPECT_EQ(crowd.member(2).lease->hold.slots, Slots{0});
  crowd.releases(crowd.member(1));
  crowd.releases(crowd.member(2));
  crowd.world.settle_for(200ms);
  EXPECT_EQ(crowd.served, up_to(5));
}

TEST(Slots, AreGivenToAllWhoWaitedForTheWholeLock) {
  for (const std::size_t stores : {1U, 3U}) {
    Crowd crowd(stores);
    crowd.come(1);
    crowd.come(3, {true, 3});
    crowd.releases(crowd.member(0));
    crowd.world.settle_for(50ms);
    EXPECT_EQ(crowd.served, up_to(4)) << stores;
  }
}

TEST(Slots, OfOneThatEndedWithoutAReleaseAreFreeWhenItsLeaseHasExpired) {
  Crowd crowd(1);
  crowd.comes(for_hours, {true, 2}, 5s);
  crowd.comes(for_hours, {true, 2}, 60s);
  crowd.world.settle_for(20ms);
  crowd.comes(for_hours, {true, 2});
  Crowd::dies(crowd.member(0));
  crowd.world.settle_for(6s);
  ASSERT_EQ(crowd.served, up_to(3));
  EXPECT_EQ(crowd.member(2).lease->hold.slots, Slots{0});
}

TEST(Slots, ThatAClientWaitsForAreNotInAReadersWay) {
  constexpr WaitPolicy at_once{.wait = 0s, .unavailable_wait = 0s, .retry_delay = 100ms};
  Crowd crowd(3);
  crowd.come(3, {true, 1});
  EXPECT_EQ(crowd.served, up_to(1));
  crowd.comes(at_once, shared);
  crowd.world.settle_for(1500ms);
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 3}));
  crowd.come(1);  // a writer, behind those who wait for the slot
  Crowd::Member& late = crowd.comes(at_once, shared);
  crowd.world.settle_for(1500ms);
  EXPECT_TRUE(late.ended);
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 3}));
}

TEST(Slots, ThatManyWaitForAreNotInAReadersWay) {
  constexpr WaitPolicy at_once{.wait = 0s, .unavailable_wait = 0s, .retry_delay = 100ms};
  Crowd crowd(1);
  crowd.come(70, {true, 1});
  crowd.comes(at_once, shared);
  crowd.world.settle_for(1500ms);
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 70}));
  // Readers pass a writer only while so many have their turn before it.
  crowd.come(1);
  crowd.comes(at_once, shared);
  crowd.world.settle_for(1500ms);
  EXPECT_EQ(crowd.served.back(), 72U);
  for (std::size_t i = 0; i < 10; ++i) {
    crowd.releases(crowd.member(i));
    crowd.world.settle_for(100ms);
  }
  Crowd::Member& late = crowd.comes(at_once, shared);
  crowd.world.settle_for(1500ms);
  EXPECT_TRUE(late.ended);
}

const Mode one_of_four{true, 4};
const Mode two_of_four{true, 4, 2};

TEST(SeveralSlots, AreTakenAllOrNone) {
  for (const std::size_t servers : {1U, 3U, 5U}) {
    Crowd crowd(servers);
    crowd.come(1, one_of_four);
    crowd.come(2, two_of_four);
    EXPECT_EQ(crowd.served, up_to(2));
    EXPECT_EQ(crowd.member(1).lease->hold.slots, (Slots{1, 2}));
    crowd.releases(crowd.member(0));
    crowd.world.settle_for(200ms);
    EXPECT_EQ(crowd.served, up_to(3)) << servers;
    EXPECT_EQ(crowd.member(2).lease->hold.slots, (Slots{0, 3}));
    for (const std::size_t number : {1U, 2U}) crowd.releases(crowd.member(number));
    crowd.world.settle_for(200ms);
    crowd.come(1, {true, 4, 4});
    EXPECT_EQ(crowd.served, up_to(4)) << "nothing is left of the others";
  }
}

// The small ones behind it are not let in, and do not ask in vain each second either.
TEST(SeveralSlots, AreCollectedWithoutThoseBehindPassingOrPolling) {
  for (const std::size_t servers : {1U, 3U}) {
    Crowd crowd(servers);
    for (std::size_t i = 0; i < 4; ++i) {
      crowd.comes(for_hours, one_of_four, 10min);
      crowd.world.settle_for(20ms);
    }
    crowd.come(1, two_of_four);
    crowd.come(10, one_of_four);
    crowd.releases(crowd.member(0));
    crowd.world.settle_for(1s);
    EXPECT_EQ(crowd.served, up_to(4)) << "one slot is free, and kept";
    const Crowd::Member& refused =
        crowd.comes({.wait = 0s, .unavailable_wait = 0s, .retry_delay = 100ms}, one_of_four);
    crowd.world.settle_for(1500ms);
    ASSERT_TRUE(refused.ended);
    ASSERT_TRUE(refused.why->queue.collector.has_value()) << servers;
    EXPECT_EQ(refused.why->queue.collector->command, "4");

    const std::size_t before = crowd.questions_to(0);
    crowd.world.settle_for(60s);
    const double a_second = static_cast<double>(crowd.questions_to(0) - before) / 60;
    EXPECT_LE(a_second, 2.5 + 12 / 15.0);
    crowd.releases(crowd.member(1));
    crowd.wait_for(5, 1s);
    EXPECT_EQ(crowd.served, up_to(5));
    EXPECT_EQ(crowd.member(4).lease->hold.slots, (Slots{0, 1}));
    crowd.releases(crowd.member(4));
    crowd.wait_for(7, 1s);
    EXPECT_EQ(crowd.served, up_to(7)) << "both slots, in order of arrival";
  }
}

TEST(SeveralSlots, AreNotKeptForACollectorThatDiedOrStandsStill) {
  for (const std::size_t servers : {1U, 3U}) {
    for (const auto ends : {&Crowd::dies, &Crowd::stops}) {
      Crowd crowd(servers);
      crowd.comes(for_hours, {true, 3}, 10min);
      crowd.world.settle_for(20ms);
      crowd.come(1, {true, 3, 3});
      crowd.come(1, {true, 3});
      crowd.world.settle_for(10s);
      ASSERT_EQ(crowd.served, up_to(1));
      ends(crowd.member(1));
      crowd.wait_for(2, 3s);
      EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 2})) << servers;
    }
  }
}

TEST(SeveralSlots, AreNotKeptForTheCollectorsOfAHostThatIsGone) {
  Crowd crowd(3);
  crowd.comes(for_hours, {true, 3}, 10min);
  crowd.world.settle_for(20ms);
  for (std::size_t i = 0; i < 20; ++i) {
    crowd.comes(for_hours, {true, 3, 3}, 30s, "gone");
    crowd.world.settle_for(20ms);
  }
  crowd.comes(for_hours, {true, 3}, 30s, "elsewhere");
  crowd.world.settle_for(10s);
  for (std::size_t i = 1; i <= 20; ++i) Crowd::stops(crowd.member(i));
  crowd.wait_for(2, 5s);
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 21}));
}

// A waiter for one of two slots keeps out those for one of five, whatever is free of the other
// three.
TEST(SeveralSlots, BehindAWaiterForFewerAreNotPolledForInVain) {
  Crowd crowd(1);
  for (std::size_t i = 0; i < 2; ++i) {
    crowd.comes(for_hours, {true, 2}, 10min);
    crowd.world.settle_for(20ms);
  }
  crowd.come(1, {true, 2});
  crowd.come(20, {true, 5});
  ASSERT_EQ(crowd.served, up_to(2));
  const std::size_t before = crowd.questions_to(0);
  crowd.world.settle_for(60s);
  const double a_second = static_cast<double>(crowd.questions_to(0) - before) / 60;
  EXPECT_LE(a_second, 2.5 + 21 / 15.0);
  crowd.releases(crowd.member(0));
  crowd.wait_for(6, 1s);
  EXPECT_EQ(crowd.served, up_to(6)) << "one of the two slots, and the three others";
}

TEST(SeveralSlots, ThatAreLeftByOneThatGaveUpGoToAllBehindIt) {
  Crowd crowd(3);
  for (std::size_t i = 0; i < 2; ++i) {
    crowd.comes(for_hours, {true, 2}, 10min);
    crowd.world.settle_for(20ms);
  }
  crowd.comes({.wait = 2s, .unavailable_wait = 1h, .retry_delay = 100ms}, {true, 2, 2});
  crowd.world.settle_for(20ms);
  crowd.come(2, {true, 2});
  crowd.releases(crowd.member(0));
  crowd.world.settle_for(500ms);
  EXPECT_EQ(crowd.served, up_to(2));
  crowd.wait_for(3, 3s);
  EXPECT_EQ(crowd.served, (std::vector<std::size_t>{0, 1, 3}));
}

// Each server has other slots free: 0 1, 1 2, 0 2.
TEST(SeveralSlots, CountOnlyAsOneSetOnOneQuorum) {
  World world(3);
  const auto hold_at = [&](std::size_t server, std::size_t slot) {
    Client& client = world.client_of({server});
    AcquireOrder wanted = order(10s);
    wanted.mode = {true, 3};
    ASSERT_TRUE(world.run(
        attempt(client.server_set, wanted, client.interrupt, AttemptOptions{.slots = {slot}})));
  };
  hold_at(0, 2);
  hold_at(1, 0);
  hold_at(2, 1);
  Client& client = world.client(50);
  AcquireOrder wanted = order(10s);
  wanted.mode = {true, 3, 2};
  wanted.owner.slots = 3;
  wanted.owner.take = 2;
  Waiter waiter(client.server_set, wanted, once, client.interrupt);
  for (;;) {
    const auto lease = world.run(waiter.next());
    ASSERT_FALSE(lease) << "no two servers agree on two slots";
    if (lease.error().final) break;
  }
  world.settle_for(11s);
  const auto lease = world.run(attempt(client.server_set, wanted, client.interrupt));
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->hold.slots, (Slots{0, 1}));
}

TEST(SeveralSlots, AreRequestedWhereAQuorumHasThemFree) {
  Crowd crowd(3);
  const auto hold_at = [&](std::size_t server, const Slots& slots) {
    Client& client = crowd.world.client_of({server});
    AcquireOrder wanted = order(10min);
    wanted.mode = {true, 4, slots.size()};
    wanted.owner.take = slots.size();
    ASSERT_TRUE(crowd.world.run(
        attempt(client.server_set, wanted, client.interrupt, AttemptOptions{.slots = slots})));
  };
  // Free are 0 1 2, 1 2 3 and 1 3: the lowest two differ everywhere, 1 2 are free on a quorum.
  hold_at(0, {3});
  hold_at(1, {0});
  hold_at(2, {0, 2});
  crowd.comes(for_hours, two_of_four);
  crowd.world.settle_for(2s);
  ASSERT_TRUE(crowd.member(0).lease.has_value());
  EXPECT_EQ(crowd.member(0).lease->hold.slots, (Slots{1, 2}));
}

TEST(SeveralSlots, AreExtendedAndHealedTogether) {
  Crowd crowd(3);
  crowd.come(1, two_of_four);
  Crowd::Member& member = crowd.member(0);
  ASSERT_TRUE(member.lease.has_value());
  const Lease lease = *member.lease;
  HeldLease held(member.client.server_set, lease.resource, lease.token, lease.fence, lease.hold,
                 lease.ttl);
  crowd.world.store(0).lose_everything();
  EXPECT_EQ(crowd.world.run(held.extend(lease.ttl)).decision, ExtendDecision::confirmed);
  crowd.world.settle_for(100ms);
  for (const std::size_t server : {1U, 2U}) crowd.world.store(server).lose_everything();
  EXPECT_EQ(crowd.world.run(held.extend(lease.ttl)).decision, ExtendDecision::lost)
      << "the first server has it again, and is no quorum";
  crowd.comes({.wait = 0s, .unavailable_wait = 0s, .retry_delay = 100ms}, {true, 3, 3});
  crowd.world.settle_for(2s);
  ASSERT_TRUE(crowd.member(1).lease.has_value());
  EXPECT_EQ(crowd.member(1).lease->hold.slots, (Slots{0, 1, 2}));
}

TEST(Slots, StandBesideReadersAndKeepAWriterOut) {
  Crowd crowd(1);
  crowd.come(1, {true, 1});
  crowd.come(1, shared);
  EXPECT_EQ(crowd.served, up_to(2));
  crowd.come(1);
  EXPECT_EQ(crowd.served, up_to(2));
  crowd.releases(crowd.member(0));
  crowd.world.settle_for(100ms);
  EXPECT_EQ(crowd.served, up_to(2));
  crowd.releases(crowd.member(1));
  crowd.world.settle_for(100ms);
  EXPECT_EQ(crowd.served, up_to(3));
}

}  // namespace
}  // namespace redlock::unit
