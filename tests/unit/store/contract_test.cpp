// What every store must do: the port LockServer, through the registry, at each store and at the
// toy.
#include <gtest/gtest.h>

#include "../samples.hpp"
#include "every_store.hpp"
#include "real_redis.hpp"
#include "toy_store.hpp"

namespace redlock {
namespace {

using namespace std::chrono_literals;
using testing::Drive;
using testing::registry;
using testing::some_owner;
using testing::token;
using testing::ttl;

/// A server of each store, and its URL.
struct Kind {
  std::string name;
  std::string (*url)(Drive& drive, const testing::Directory& directory,
                     std::unique_ptr<testing::RealRedis>& redis);
  bool is_complete = true;  ///< else it refuses shared locks and slots, and cannot notify waiters
};

void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}

std::string toy_url(Drive&, const testing::Directory& directory,
                    std::unique_ptr<testing::RealRedis>&) {
  return "toy:" + directory.file("");
}
std::string local_url(Drive&, const testing::Directory& directory,
                      std::unique_ptr<testing::RealRedis>&) {
  return "local:" + directory.file("");
}
std::string redis_url(Drive& drive, const testing::Directory&,
                      std::unique_ptr<testing::RealRedis>& redis) {
  redis = std::make_unique<testing::RealRedis>(drive);
  return redis->endpoint().name();
}

const std::array<Kind, 3> kinds{
    {{"Toy", toy_url, /*is_complete=*/false}, {"Local", local_url}, {"Redis", redis_url}}};

class ContractTest : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<LockServer> connect() {
    return registry.read(url_).value()->connect(drive_.executor(), drive_.clock(), LinkOptions());
  }

  void TearDown() override {
    drive_.run(server_->close(drive_.soon()));
    drive_.run(other_->close(drive_.soon()));
  }

  AcquireRequest request(char digit, Duration length = 30s) const {
    return {resource_, token(digit), ttl(length), some_owner()};
  }
  AcquireVote acquire(AcquireRequest request) {
    return drive_.run(server_->acquire(std::move(request), drive_.soon()));
  }
  AcquireVote acquire(char digit, Duration length = 30s) { return acquire(request(digit, length)); }

  /// Attempts as a waiter does; the ticket is its position.
  AcquireVote wait_in_queue(char digit, Ticket ticket) {
    AcquireRequest waiting = request(digit);
    waiting.entry = entry(digit, ticket);
    return acquire(std::move(waiting));
  }
  static QueueEntry entry(char digit, Ticket ticket) {
    return {std::string("waiter") + digit, ticket, /*polls=*/true, 30s};
  }

  ExtendVote extend(char digit, Duration length = 30s) {
    return drive_.run(server_->extend({resource_, token(digit), ttl(length)}, drive_.soon()));
  }
  ReleaseVote release(char digit, bool by_hand = false) {
    return drive_.run(server_->release({resource_, token(digit), by_hand}, drive_.soon()));
  }
  HealVote heal(char digit, Fence fence = Fence(42)) {
    const Provenance from{1500ms, true, encode_owner(some_owner())};
    return drive_.run(server_->heal({resource_, token(digit), ttl(), fence, from}, drive_.soon()));
  }
  BreakVote break_lock(std::optional<Fence> only_if = {}) {
    Owner breaker = some_owner();
    breaker.note = "stuck";
    return drive_.run(server_->break_lock({resource_, only_if, breaker}, drive_.soon()));
  }

  /// As another client sees it.
  InspectVote inspect() {
    return drive_.run(other_->inspect(resource_, std::nullopt, drive_.soon()));
  }
  bool is_free() { return std::holds_alternative<Free>(inspect()); }

  Fence granted(const AcquireVote& vote) {
    if (const auto* fault = std::get_if<Fault>(&vote)) ADD_FAILURE() << fault->text;
    const auto* grant = std::get_if<Granted>(&vote);
    EXPECT_NE(grant, nullptr) << vote.index();
    return grant != nullptr ? grant->fence : Fence();
  }

  /// A store may refuse what it cannot do, and then says so each time.
  static bool is_refused(const AcquireVote& vote) {
    const auto* fault = std::get_if<Fault>(&vote);
    return fault != nullptr && fault->kind == FaultKind::misconfigured;
  }

  Drive drive_;
  testing::Directory directory_;
  std::unique_ptr<testing::RealRedis> redis_;
  std::string url_ = GetParam().url(drive_, directory_, redis_);
  std::unique_ptr<LockServer> server_ = connect();
  std::unique_ptr<LockServer> other_ = connect();
  Resource resource_ = Resource::from("deploy").value();
};

INSTANTIATE_TEST_SUITE_P(Store, ContractTest, ::testing::ValuesIn(kinds),
                         [](const auto& about) { return about.param.name; });

/// For what the toy store leaves out.
class ContractOfScriptsTest : public ContractTest {};

INSTANTIATE_TEST_SUITE_P(Store, ContractOfScriptsTest,
                         ::testing::ValuesIn(std::begin(kinds) + 1, std::end(kinds)),
                         [](const auto& about) { return about.param.name; });

template <class Vote, class... Votes>
bool is(const std::variant<Votes...>& vote) {
  return std::holds_alternative<Vote>(vote);
}

NotOurs::Why why(const ExtendVote& vote) {
  EXPECT_TRUE(is<NotOurs>(vote)) << vote.index();
  return is<NotOurs>(vote) ? std::get<NotOurs>(vote).why : NotOurs::Why::gone;
}

TEST_P(ContractTest, OneHoldsTheLock) {
  const Fence fence = granted(acquire('a'));
  EXPECT_GT(fence.value(), 0U);

  const AcquireVote refused = acquire('b');
  ASSERT_TRUE(is<Held>(refused));
  const Holder& holder = std::get<Held>(refused).holder;
  EXPECT_FALSE(holder.foreign);
  EXPECT_FALSE(holder.shared);
  EXPECT_EQ(holder.fence, fence);
  ASSERT_TRUE(holder.owner.has_value());
  EXPECT_EQ(holder.owner->host, "web1");
  EXPECT_EQ(holder.owner->note, "nightly");
  ASSERT_TRUE(holder.remaining.has_value());
  EXPECT_LE(*holder.remaining, 30s);
  EXPECT_FALSE(std::get<Held>(refused).queue.queued);
}

TEST_P(ContractTest, TheSameTokenIsADuplicate) {
  granted(acquire('a'));
  EXPECT_TRUE(is<Duplicate>(acquire('a')));
}

TEST_P(ContractTest, OtherResourcesAreOtherLocks) {
  granted(acquire('a'));
  AcquireRequest other = request('b');
  other.resource = Resource::from("deploy2").value();
  granted(acquire(std::move(other)));
}

TEST_P(ContractTest, ReleasedItIsFreeAndTheFenceGrows) {
  const Fence first = granted(acquire('a'));
  EXPECT_FALSE(is_free());
  EXPECT_TRUE(is<Released>(release('a')));
  EXPECT_TRUE(is_free());
  EXPECT_TRUE(is<NotOurs>(release('a')));
  EXPECT_GT(granted(acquire('b')), first);
}

TEST_P(ContractTest, ARaisedFenceCountsFromThere) {
  const Fence first = granted(acquire('a'));
  const Fence raised(first.value() + 1'000'000);
  EXPECT_TRUE(is<Raised>(
      drive_.run(server_->raise_fence({resource_, token('a'), raised, ttl()}, drive_.soon()))));
  EXPECT_TRUE(is<NotRaised>(
      drive_.run(server_->raise_fence({resource_, token('b'), raised, ttl()}, drive_.soon()))));
  EXPECT_TRUE(is<Released>(release('a')));
  EXPECT_GT(granted(acquire('b')), raised);
}

TEST_P(ContractTest, OnlyTheHolderExtends) {
  const Fence fence = granted(acquire('a', 20s));
  EXPECT_EQ(why(extend('b')), NotOurs::Why::held);
  const ExtendVote extended = extend('a', 60s);
  ASSERT_TRUE(is<Extended>(extended));
  EXPECT_EQ(std::get<Extended>(extended).fence, fence);
  EXPECT_TRUE(is<Extended>(extend('a', 1s)));
  const InspectVote seen = inspect();
  ASSERT_TRUE(is<Taken>(seen));
  EXPECT_GT(*std::get<Taken>(seen).holder.remaining, 20s) << "an extension never shortens";
}

TEST_P(ContractTest, ALeaseThatIsNotExtendedExpires) {
  granted(acquire('a', 1ms));
  const Instant end = drive_.soon();
  AcquireVote vote = acquire('b');
  while (is<Held>(vote) && drive_.clock().now() < end) vote = acquire('b');
  granted(vote);
  EXPECT_EQ(why(extend('a')), NotOurs::Why::held);
  EXPECT_TRUE(is<Released>(release('b')));
  EXPECT_EQ(why(extend('a')), NotOurs::Why::gone);
}

TEST_P(ContractTest, AReleaseByHandIsRememberedForTheHolder) {
  granted(acquire('a'));
  EXPECT_TRUE(is<Released>(release('a', /*by_hand=*/true)));
  EXPECT_EQ(why(extend('a')), NotOurs::Why::released);
  const HealVote healed = heal('a');
  ASSERT_TRUE(is<NotOurs>(healed));
  EXPECT_EQ(std::get<NotOurs>(healed).why, NotOurs::Why::released);
  granted(acquire('b'));
}

TEST_P(ContractTest, TheLeaseOfARunIsNotReleasedByHand) {
  AcquireRequest supervised = request('a');
  Owner run = some_owner();
  run.supervised = true;
  supervised.owner = run;
  granted(acquire(std::move(supervised)));
  EXPECT_TRUE(is<Supervised>(release('a', /*by_hand=*/true)));
  EXPECT_FALSE(is_free());
  EXPECT_TRUE(is<Released>(release('a')));
}

TEST_P(ContractTest, AKeptLeaseEndsByItself) {
  granted(acquire('a'));
  ReleaseRequest kept{resource_, token('a'), /*by_hand=*/false, 20s};
  EXPECT_TRUE(is<Released>(drive_.run(server_->release(std::move(kept), drive_.soon()))));
  const AcquireVote refused = acquire('b');
  ASSERT_TRUE(is<Held>(refused));
  EXPECT_LE(*std::get<Held>(refused).holder.remaining, 20s);
}

TEST_P(ContractTest, AKeptLeaseOfARunIsReleasedByHand) {
  AcquireRequest supervised = request('a');
  Owner run = some_owner();
  run.supervised = true;
  supervised.owner = run;
  granted(acquire(std::move(supervised)));
  ReleaseRequest kept{resource_, token('a'), /*by_hand=*/false, 20s};
  run.finished = Finished{20s, 0, std::nullopt};
  kept.finished = run;
  EXPECT_TRUE(is<Released>(drive_.run(server_->release(std::move(kept), drive_.soon()))));
  EXPECT_FALSE(is_free());
  EXPECT_TRUE(is<Released>(release('a', /*by_hand=*/true)));
  EXPECT_TRUE(is_free());
}

TEST_P(ContractTest, AServerThatLostALeaseTakesItBack) {
  ASSERT_TRUE(is<Healed>(heal('a', Fence(4711))));
  const InspectVote seen = inspect();
  ASSERT_TRUE(is<Taken>(seen));
  EXPECT_EQ(std::get<Taken>(seen).holder.fence, Fence(4711));
  EXPECT_GE(std::get<Taken>(seen).holder.age, 1500ms);
  EXPECT_TRUE(is<NotOurs>(heal('b')));
  EXPECT_TRUE(is<Extended>(extend('a')));
  EXPECT_TRUE(is<Released>(release('a')));
  EXPECT_GT(granted(acquire('b')), Fence(4711));
}

TEST_P(ContractTest, TheHolderIsToldWhoBrokeIt) {
  EXPECT_TRUE(is<NothingToBreak>(break_lock()));
  const Fence fence = granted(acquire('a'));
  EXPECT_TRUE(is<OtherFence>(break_lock(Fence(fence.value() + 1))));
  const BreakVote broken = break_lock(fence);
  ASSERT_TRUE(is<Broken>(broken));
  EXPECT_EQ(std::get<Broken>(broken).holder.fence, fence);
  EXPECT_TRUE(is_free());

  const ExtendVote told = extend('a');
  ASSERT_TRUE(is<NotOurs>(told));
  ASSERT_TRUE(std::get<NotOurs>(told).breaker.has_value());
  EXPECT_EQ(std::get<NotOurs>(told).breaker->note, "stuck");
}

TEST_P(ContractTest, AStopRequestReachesTheHolderOfThatLeaseAlone) {
  const auto ask = [&](std::optional<LeaseId> lease, const std::string& reason) {
    return drive_.run(other_->ask_holder(
        {resource_, std::move(lease), {}, {"web1", "alice", reason}}, drive_.soon()));
  };
  const auto told = [&](char digit) {
    const ExtendVote vote = extend(digit);
    EXPECT_TRUE(is<Extended>(vote));
    return std::get<Extended>(vote).stop_request;
  };
  EXPECT_TRUE(is<Free>(ask({}, "")));
  granted(acquire('a'));
  const InspectVote seen = ask({}, "");
  ASSERT_TRUE(is<Taken>(seen));
  EXPECT_FALSE(std::get<Taken>(seen).holder.owner->stop_request);
  const LeaseId id = std::get<Taken>(seen).holder.id;
  ask(LeaseId{"another"}, "not for this one");
  EXPECT_FALSE(told('a'));

  const InspectVote asked = ask(id, "wrong branch");
  ASSERT_TRUE(is<Taken>(asked));
  EXPECT_EQ(std::get<Taken>(asked).holder.id, id);
  ASSERT_TRUE(std::get<Taken>(asked).holder.owner->stop_request);
  ask(id, "once more");
  ASSERT_TRUE(told('a'));
  EXPECT_EQ(told('a')->reason, "wrong branch");
  EXPECT_EQ(told('a')->user, "alice");

  EXPECT_TRUE(is<Released>(release('a')));
  granted(acquire('b'));
  ask(id, "too late");
  EXPECT_FALSE(told('b'));
}

TEST_P(ContractOfScriptsTest, OnlyTheReleaseOfALeaseThatWasAskedToStopIsKnownAsSuch) {
  const auto ask = [&](const LeaseId& id) {
    return drive_.run(
        other_->ask_holder({resource_, id, {}, {"web1", "alice", "why"}}, drive_.soon()));
  };
  const auto ended = [](const InspectVote& vote) {
    if (const auto* taken = std::get_if<Taken>(&vote)) return taken->ended;
    return is<Free>(vote) && std::get<Free>(vote).ended;
  };
  const auto take = [&](char digit, Mode mode) {
    AcquireRequest taking = request(digit);
    taking.mode = mode;
    const AcquireVote vote = acquire(std::move(taking));
    granted(vote);
    return std::get<Granted>(vote).id;
  };
  char digit = '0';
  for (const Mode& mode : {Mode{}, Mode{/*shared=*/true, 0}, Mode{/*shared=*/true, 2}}) {
    const LeaseId asked = take(++digit, mode);
    EXPECT_FALSE(ended(ask(asked)));
    EXPECT_TRUE(is<Released>(release(digit)));
    EXPECT_TRUE(ended(ask(asked)));

    const LeaseId not_asked = take(++digit, mode);
    EXPECT_TRUE(ended(ask(asked)));
    EXPECT_TRUE(is<Released>(release(digit)));
    EXPECT_FALSE(ended(ask(not_asked)));

    const LeaseId broken = take(++digit, mode);
    EXPECT_FALSE(ended(ask(broken)));
    EXPECT_TRUE(is<Broken>(break_lock()));
    EXPECT_FALSE(ended(ask(broken)));
  }
}

TEST_P(ContractTest, WaitersComeInByTheirTickets) {
  granted(acquire('a'));
  const AcquireVote second = wait_in_queue('c', 2);
  ASSERT_TRUE(is<Held>(second));
  EXPECT_TRUE(std::get<Held>(second).queue.queued);
  ASSERT_TRUE(is<Held>(wait_in_queue('b', 1)));
  const InspectVote seen = inspect();
  ASSERT_TRUE(is<Taken>(seen));
  EXPECT_EQ(std::get<Taken>(seen).parties.waiters, 2U);

  EXPECT_TRUE(is<Released>(release('a')));
  EXPECT_TRUE(is<Queued>(acquire('d'))) << "waiters come first";
  EXPECT_TRUE(is<Queued>(wait_in_queue('c', 2)));
  granted(wait_in_queue('b', 1));
  EXPECT_TRUE(is<Released>(release('b')));
  granted(wait_in_queue('c', 2));
}

// Else a waiter that only a minority grants believes that it was forgotten there, and gives up its
// subscription for a moment.
TEST_P(ContractOfScriptsTest, AWaiterThatIsGrantedTheLockIsToldThatItWasInTheQueue) {
  granted(acquire('a'));
  ASSERT_TRUE(is<Held>(wait_in_queue('b', 1)));
  EXPECT_TRUE(is<Released>(release('a')));
  const AcquireVote vote = wait_in_queue('b', 1);
  granted(vote);
  ASSERT_TRUE(is<Granted>(vote));
  EXPECT_TRUE(std::get<Granted>(vote).queue.queued);
  EXPECT_TRUE(std::get<Granted>(vote).queue.was_queued);
}

TEST_P(ContractOfScriptsTest, AnAttemptThatIsGrantedTheLockAtOnceWasInNoQueue) {
  const AcquireVote vote = wait_in_queue('a', 1);
  granted(vote);
  ASSERT_TRUE(is<Granted>(vote));
  EXPECT_FALSE(std::get<Granted>(vote).queue.queued);
  EXPECT_FALSE(std::get<Granted>(vote).queue.was_queued);
}

TEST_P(ContractOfScriptsTest, TheNewestWaiterSupersedesThoseThatSupersedeToo) {
  const auto supersede = [this](char digit, Ticket ticket) {
    AcquireRequest waiting = request(digit);
    waiting.entry = entry(digit, ticket);
    waiting.supersedes = true;
    return acquire(std::move(waiting));
  };
  granted(acquire('a'));
  ASSERT_TRUE(is<Held>(wait_in_queue('e', 1)));
  AcquireVote vote = supersede('b', 2);
  ASSERT_TRUE(is<Held>(vote));
  EXPECT_EQ(std::get<Held>(vote).queue.superseder, "");
  ASSERT_TRUE(is<Held>(supersede('c', 3)));
  EXPECT_EQ(std::get<Taken>(inspect()).parties.waiters, 2U) << "b is gone";

  vote = supersede('b', 2);
  ASSERT_TRUE(is<Held>(vote));
  EXPECT_EQ(std::get<Held>(vote).queue.superseder, entry('c', 3).id);
  ASSERT_TRUE(std::get<Held>(vote).queue.superseded_by.has_value());
  EXPECT_EQ(std::get<Held>(vote).queue.superseded_by->host, some_owner().host);
  EXPECT_FALSE(std::get<Held>(vote).queue.queued);

  EXPECT_TRUE(is<Released>(release('a')));
  EXPECT_TRUE(is<Queued>(supersede('b', 2)));
  granted(wait_in_queue('e', 1));
  EXPECT_TRUE(is<Released>(release('e')));
  granted(supersede('c', 3));
  EXPECT_TRUE(is<Released>(release('c')));
  vote = supersede('b', 2);
  ASSERT_TRUE(is<Queued>(vote)) << "it was superseded, whatever became of c";
  EXPECT_EQ(std::get<Queued>(vote).queue.superseder, entry('c', 3).id);
  granted(supersede('d', 4));
}

TEST_P(ContractOfScriptsTest, ADismissalSendsAwayThoseThatWaitAndNoNewcomer) {
  const auto dismiss = [this](std::optional<Ticket> up_to) {
    return std::get<Dismissed>(drive_.run(
        other_->dismiss({resource_, up_to, {.host = "web1", .user = "ops", .reason = "bad commit"}},
                        drive_.soon())));
  };
  EXPECT_EQ(dismiss(std::nullopt).queued, 0U);
  granted(acquire('a'));
  ASSERT_TRUE(is<Held>(wait_in_queue('b', 2)));
  ASSERT_TRUE(is<Held>(wait_in_queue('c', 3)));
  ASSERT_TRUE(is<Held>(wait_in_queue('d', 9)));
  const Dismissed asked = dismiss(std::nullopt);
  EXPECT_EQ(asked.queued, 3U);
  EXPECT_EQ(asked.max_ticket, 9U);

  const Dismissed sent = dismiss(3);
  EXPECT_EQ(sent.queued, 2U);
  ASSERT_EQ(sent.first_queued.size(), 2U);
  EXPECT_EQ(sent.first_queued.front().host, some_owner().host);
  AcquireVote vote = wait_in_queue('b', 2);
  ASSERT_TRUE(is<Held>(vote));
  ASSERT_TRUE(std::get<Held>(vote).queue.dismissal.has_value());
  EXPECT_EQ(std::get<Held>(vote).queue.dismissal->reason, "bad commit");
  EXPECT_EQ(dismiss(3).queued, 1U) << "who learnt of it has left the queue";

  release('a');
  vote = wait_in_queue('c', 3);
  ASSERT_TRUE(is<Queued>(vote)) << "it is not granted the lock although that is free";
  EXPECT_TRUE(std::get<Queued>(vote).queue.dismissal.has_value());
  EXPECT_EQ(dismiss(3).queued, 0U);
  granted(wait_in_queue('d', 9));
  release('d');
  EXPECT_TRUE(is<Queued>(wait_in_queue('c', 3))) << "it outlives an empty queue";

  granted(acquire('e'));
  vote = acquire('f');
  ASSERT_TRUE(is<Held>(vote));
  EXPECT_EQ(std::get<Held>(vote).queue.max_ticket, 3U) << "a newcomer gets a larger ticket";
  EXPECT_FALSE(std::get<Held>(vote).queue.dismissal.has_value());
  AcquireRequest newest = request('9');
  newest.entry = entry('9', 7);
  newest.supersedes = true;
  ASSERT_TRUE(is<Held>(acquire(newest)));
  EXPECT_TRUE(std::get<Held>(wait_in_queue('c', 3)).queue.dismissal.has_value())
      << "a waiter that supersedes others does not make it forgotten";
}

TEST_P(ContractOfScriptsTest, AHigherClassAcquiresFirstAndWithinAClassTheFirst) {
  const auto attempt = [this](char digit, std::optional<Ticket> ticket, unsigned priority) {
    AcquireRequest waiting = request(digit);
    Owner owner = some_owner();
    owner.priority = priority;
    waiting.owner = owner;
    if (ticket) waiting.entry = entry(digit, *ticket);
    return acquire(std::move(waiting));
  };
  const auto ahead_of = [](const AcquireVote& vote) { return std::get<Held>(vote).queue.ahead; };
  granted(acquire('a'));
  EXPECT_EQ(ahead_of(attempt('b', 2, 0)), 0U);
  EXPECT_EQ(ahead_of(attempt('c', 8, 5)), 0U);
  EXPECT_EQ(ahead_of(attempt('d', 9, 5)), 1U);
  EXPECT_EQ(ahead_of(attempt('e', 7, 9)), 0U);
  EXPECT_EQ(ahead_of(attempt('b', 2, 0)), 3U);
  const auto largest_for = [&](unsigned priority) {
    return std::get<Held>(attempt('f', std::nullopt, priority)).queue.max_ticket;
  };
  EXPECT_EQ(largest_for(9), 7U);
  EXPECT_EQ(largest_for(7), std::nullopt);
  EXPECT_EQ(largest_for(5), 9U);
  EXPECT_EQ(largest_for(1), std::nullopt);
  EXPECT_EQ(largest_for(0), 2U);

  release('a');
  for (const char digit : {'b', 'c', 'd'}) {
    const Ticket ticket = digit == 'b' ? 2 : digit == 'c' ? 8 : 9;
    EXPECT_TRUE(is<Queued>(attempt(digit, ticket, digit == 'b' ? 0 : 5))) << digit;
  }
  EXPECT_TRUE(is<Queued>(attempt('f', std::nullopt, 9))) << "without a ticket it comes last";
  granted(attempt('e', 7, 9));
  release('e');
  EXPECT_TRUE(is<Queued>(attempt('f', std::nullopt, 5))) << "in its class";
  granted(attempt('f', std::nullopt, 6));
  release('f');
  granted(attempt('c', 8, 5));
  release('c');
  granted(attempt('d', 9, 5));
  release('d');
  granted(attempt('b', 2, 0));
}

TEST_P(ContractOfScriptsTest, ABoundedWaiterCountsThoseThatCameBeforeItInAnyClass) {
  granted(acquire('a'));
  ASSERT_TRUE(is<Held>(wait_in_queue('b', 2)));
  AcquireRequest urgent = request('c');
  Owner owner = some_owner();
  owner.priority = 9;
  urgent.owner = owner;
  urgent.entry = entry('c', 3);
  urgent.max_waiting = 5;
  const AcquireVote vote = acquire(urgent);
  ASSERT_TRUE(is<Held>(vote));
  EXPECT_EQ(std::get<Held>(vote).queue.ahead, 1U);
}

TEST_P(ContractOfScriptsTest, TheNewestRunAsksAnOlderOneThatReplacesTooToMakeRoom) {
  const auto replaces = [this](char digit, Ticket ticket, bool with_place = true) {
    const Place place{ticket, entry(digit, ticket).id};
    AcquireRequest waiting = request(digit);
    Owner owner = some_owner();
    if (with_place) owner.place = place;
    waiting.owner = owner;
    waiting.entry = entry(digit, ticket);
    waiting.supersedes = true;
    if (with_place) waiting.replacement = StopRequest{"web2", "bob", {digit}, place};
    return acquire(std::move(waiting));
  };
  const auto asked_by = [this](char digit) {
    const ExtendVote vote = extend(digit);
    EXPECT_TRUE(is<Extended>(vote));
    const auto asked = std::get<Extended>(vote).stop_request;
    return asked ? asked->reason : "";
  };
  granted(replaces('c', 3));
  ASSERT_TRUE(is<Held>(replaces('b', 2))) << "it drew its ticket before";
  EXPECT_EQ(asked_by('c'), "");
  const AcquireVote refused = replaces('d', 4);
  ASSERT_TRUE(is<Held>(refused));
  ASSERT_TRUE(std::get<Held>(refused).holder.owner);
  EXPECT_EQ(std::get<Held>(refused).holder.owner->stop_request->newer,
            (Place{4, entry('d', 4).id}));
  ASSERT_TRUE(is<Held>(replaces('e', 5)));
  EXPECT_EQ(asked_by('c'), "d") << "it is newer than the holder, and that is enough";

  // By hand outranks it.
  const LeaseId id = std::get<Held>(refused).holder.id;
  drive_.run(other_->ask_holder({resource_, id, {}, {"web1", "alice", "by hand"}}, drive_.soon()));
  EXPECT_EQ(asked_by('c'), "by hand");

  // Requests that arrive under the next lease: of an older one, and under one that may not be
  // replaced.
  EXPECT_TRUE(is<Released>(release('c')));
  granted(replaces('e', 5));
  ASSERT_TRUE(is<Held>(replaces('d', 4)));
  EXPECT_EQ(asked_by('e'), "");
  EXPECT_TRUE(is<Released>(release('e')));
  granted(replaces('f', 6, /*with_place=*/false));
  ASSERT_TRUE(is<Held>(replaces('1', 7)));
  EXPECT_EQ(asked_by('f'), "");
}

TEST_P(ContractTest, AWaiterThatLeavesTheQueueDelaysNone) {
  granted(acquire('a'));
  ASSERT_TRUE(is<Held>(wait_in_queue('b', 1)));
  ASSERT_TRUE(is<Held>(wait_in_queue('c', 2)));
  server_->leave(resource_, entry('b', 1).id);
  EXPECT_TRUE(is<Released>(release('a')));
  granted(wait_in_queue('c', 2));
}

TEST_P(ContractTest, AnAttemptThatFailedElsewhereIsUndone) {
  granted(acquire('a'));
  server_->undo(resource_, token('a'));
  granted(acquire('b'));
  server_->undo(resource_, token('a'));
  EXPECT_TRUE(is<Extended>(extend('b'))) << "another's lease stays";
}

TEST_P(ContractTest, WhoseAttemptIsUndoneWaitsOn) {
  granted(acquire('a'));
  server_->undo(resource_, token('a'), Requeue{entry('a', 1), Mode(), some_owner()});
  EXPECT_TRUE(is<Queued>(wait_in_queue('b', 2)));
  granted(wait_in_queue('a', 1));
}

TEST_P(ContractTest, TheLocksAreListed) {
  granted(acquire('a'));
  const auto list = drive_.run(other_->list({.answer_timeout = testing::timeout}));
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(list->resources, std::vector<Resource>{resource_});
  EXPECT_TRUE(list->skipped.empty());
}

TEST_P(ContractTest, ReadersShareALockAndAWriterDoesNot) {
  const auto shared = [this](char digit) {
    AcquireRequest wanted = request(digit);
    wanted.mode.shared = true;
    return acquire(std::move(wanted));
  };
  const AcquireVote first = shared('a');
  ASSERT_EQ(is_refused(first), !GetParam().is_complete);
  if (is_refused(first)) return;
  granted(first);
  granted(shared('b'));
  const AcquireVote writer = acquire('c');
  ASSERT_TRUE(is<Held>(writer));
  EXPECT_TRUE(std::get<Held>(writer).holder.shared);

  EXPECT_TRUE(is<Released>(release('a')));
  EXPECT_TRUE(is<Held>(acquire('c')));
  EXPECT_TRUE(is<Extended>(extend('b')));
  EXPECT_TRUE(is<Released>(release('b')));
  granted(acquire('c'));
  EXPECT_TRUE(is<Held>(shared('d')));
}

TEST_P(ContractTest, EachSlotIsOnes) {
  const auto slot = [this](char digit, const Slots& wanted) {
    AcquireRequest slotted = request(digit);
    slotted.mode = {/*shared=*/true, 2};
    slotted.slots = wanted;
    return acquire(std::move(slotted));
  };
  const AcquireVote first = slot('a', {});
  ASSERT_EQ(is_refused(first), !GetParam().is_complete);
  if (is_refused(first)) return;
  granted(first);
  EXPECT_EQ(std::get<Granted>(first).slots, Slots{0});
  EXPECT_TRUE(is<Held>(slot('b', {0})));
  const AcquireVote second = slot('b', {});
  granted(second);
  EXPECT_EQ(std::get<Granted>(second).slots, Slots{1});
  const AcquireVote third = slot('c', {});
  ASSERT_TRUE(is<Held>(third));
  EXPECT_EQ(std::get<Held>(third).queue.free_slots, "00");

  EXPECT_TRUE(
      is<NotOurs>(drive_.run(server_->extend({resource_, token('a'), ttl(), {1}}, drive_.soon()))));
  EXPECT_TRUE(is<Extended>(
      drive_.run(server_->extend({resource_, token('a'), ttl(), {0}}, drive_.soon()))));
  EXPECT_TRUE(is<Released>(release('a')));
  const AcquireVote free = slot('c', {});
  granted(free);
  EXPECT_EQ(std::get<Granted>(free).slots, Slots{0});
}

TEST_P(ContractOfScriptsTest, SeveralSlotsAreOneLease) {
  const auto take = [this](char digit, const Mode& mode) {
    AcquireRequest wanted = request(digit);
    wanted.mode = mode;
    Owner owner = some_owner();
    owner.slots = mode.slots;
    owner.take = mode.take;
    wanted.owner = owner;
    return acquire(std::move(wanted));
  };
  const auto extend_in = [this](const Slots& slots) {
    return drive_.run(server_->extend({resource_, token('a'), ttl(), slots}, drive_.soon()));
  };
  const AcquireVote both = take('a', {true, 3, 2});
  granted(both);
  EXPECT_EQ(std::get<Granted>(both).slots, (Slots{0, 1}));
  EXPECT_TRUE(is<Held>(take('b', {true, 3, 2})));
  EXPECT_TRUE(is<Held>(take('b', {true, 2})));
  EXPECT_TRUE(is<Extended>(extend_in({0, 1})));
  EXPECT_TRUE(is<NotOurs>(extend_in({0, 2})));
  EXPECT_TRUE(is<NotOurs>(extend_in({0, 1, 2})));
  const LockParties seen = std::get<Taken>(inspect()).parties;
  ASSERT_EQ(seen.first_shares.size(), 2U);
  EXPECT_EQ(seen.first_shares[0].holder.id, seen.first_shares[1].holder.id);
  EXPECT_EQ(seen.free_slots, "00");

  const AcquireVote third = take('b', {true, 3});
  granted(third);
  EXPECT_TRUE(is<Released>(release('a')));
  EXPECT_FALSE(is_free()) << "another has the third";
  granted(take('a', {true, 3, 2}));
  EXPECT_TRUE(is<Released>(release('b')));
  EXPECT_TRUE(is<Released>(release('a')));
  EXPECT_TRUE(is_free());
}

TEST_P(ContractOfScriptsTest, ABoundedWaiterIsToldHowManyOthersWait) {
  const auto wait_bounded = [this](char digit, Ticket ticket, std::optional<std::size_t> bound) {
    AcquireRequest waiting = request(digit);
    waiting.entry = entry(digit, ticket);
    waiting.max_waiting = bound;
    const AcquireVote vote = acquire(std::move(waiting));
    return std::get<Held>(vote).queue.others;
  };
  granted(acquire('a'));
  EXPECT_EQ(wait_bounded('b', 2, 1), 0U);
  EXPECT_EQ(wait_bounded('c', 3, 1), 1U);
  EXPECT_EQ(wait_bounded('b', 2, 1), 1U) << "whatever their tickets";
  EXPECT_EQ(wait_bounded('b', 2, std::nullopt), std::nullopt);

  AcquireRequest gone = request('d');
  gone.entry = QueueEntry{"killed", 1, /*polls=*/false, 30s};
  acquire(std::move(gone));
  EXPECT_EQ(wait_bounded('c', 3, 3), 2U) << "fewer than may wait: none is asked for";
  EXPECT_EQ(wait_bounded('c', 3, 2), 1U) << "one that hears nothing does not count";
}

TEST_P(ContractTest, TheFirstWaiterIsToldOfARelease) {
  const auto told = drive_.clock().make_event();
  const auto fault = drive_.run(other_->subscribe(
      resource_, entry('b', 1).id,
      [&told](Notification call) {
        if (call == Notification::granted) told->notify();
      },
      drive_.soon()));
  ASSERT_EQ(fault.has_value(), !GetParam().is_complete);
  if (fault) return;
  granted(acquire('a'));
  AcquireRequest waiting = request('b');
  waiting.entry = entry('b', 1);
  waiting.entry->polls = false;
  ASSERT_TRUE(is<Held>(acquire(std::move(waiting))));
  EXPECT_TRUE(is<Released>(release('a')));
  EXPECT_TRUE(drive_.run(told->wait_until(drive_.soon())));
}

TEST_P(ContractTest, IsDiagnosedAsOneThatCanBeLocked) {
  const auto address = registry.read(url_).value();
  const DiagnosisRequest request{std::nullopt, testing::timeout, Duration::zero()};
  const Diagnosis diagnosis =
      drive_.run(address->diagnose(drive_.executor(), drive_.clock(), LinkOptions(), request));
  EXPECT_TRUE(diagnosis.reachable);
  EXPECT_TRUE(diagnosis.votes);
  EXPECT_EQ(diagnosis.findings.front().level, Level::good) << diagnosis.findings.front().text;
  const auto list = drive_.run(other_->list({.answer_timeout = testing::timeout}));
  ASSERT_TRUE(list.has_value());
  EXPECT_TRUE(list->resources.empty());
}

}  // namespace
}  // namespace redlock
