// The lock itself: every script on a real Redis, through the code that calls it.
#include <algorithm>
#include <map>
#include <sstream>

#include "../samples.hpp"
#include "core/helper_keys.hpp"
#include "real_redis.hpp"
#include "store/owner_record.hpp"
#include "store/redis/redis_server.hpp"
#include "support/digest.hpp"

namespace redlock::redis {
namespace {

using namespace testing;

constexpr std::string_view random_digits = "0123456789abcdef";

/// The fence that a clock shows after this time.
Fence fence_in(Milliseconds span) {
  return Fence(static_cast<std::uint64_t>((wall_clock_now() + span).count()));
}

class ScriptsTest : public ::testing::Test {
 protected:
  explicit ScriptsTest(std::string_view key = "deploy")
      : resource_(resource(key)), helper_(resource_) {}

  AcquireVote acquire(Token with, Ttl length = ttl(), Owner owner = some_owner()) {
    return drive_.run(
        server_.acquire({resource_, std::move(with), length, std::move(owner)}, drive_.soon()));
  }
  ExtendVote extend(Token with, Ttl length = ttl()) {
    return drive_.run(server_.extend({resource_, std::move(with), length}, drive_.soon()));
  }
  RaiseVote raise(Token with, Fence fence) {
    return drive_.run(
        server_.raise_fence({resource_, std::move(with), fence, ttl()}, drive_.soon()));
  }
  HealVote heal(Token with, Fence fence, Provenance from = {1500ms, true, "{}"}) {
    return drive_.run(
        server_.heal({resource_, std::move(with), ttl(), fence, std::move(from)}, drive_.soon()));
  }
  ReleaseVote release(Token with) {
    return drive_.run(server_.release({resource_, std::move(with), false}, drive_.soon()));
  }
  ReleaseVote release_by_hand(Token with) {
    return drive_.run(server_.release({resource_, std::move(with), true}, drive_.soon()));
  }
  ReleaseVote release_after(Duration expire_in, Token with) {
    return drive_.run(
        server_.release({resource_, std::move(with), /*by_hand=*/false, expire_in}, drive_.soon()));
  }
  BreakVote break_lock(std::optional<Fence> only_if = {}, Owner breaker = {}) {
    return drive_.run(server_.break_lock({resource_, only_if, std::move(breaker)}, drive_.soon()));
  }
  InspectVote inspect() {
    return drive_.run(server_.inspect(resource_, std::nullopt, drive_.soon()));
  }

  std::vector<std::string> list() {
    const auto list = drive_.run(server_.list({.answer_timeout = timeout}));
    std::vector<std::string> keys;
    if (!list) ADD_FAILURE() << list.error().text;
    if (list) {
      for (const Resource& resource : list->resources) keys.push_back(resource.key());
    }
    return keys;
  }

  Fence acquired(Token with, Owner owner = some_owner()) {
    const auto vote = acquire(std::move(with), ttl(), std::move(owner));
    if (const auto* fault = std::get_if<Fault>(&vote)) ADD_FAILURE() << fault->text;
    const auto* grant = std::get_if<Granted>(&vote);
    EXPECT_NE(grant, nullptr) << "vote " << vote.index();
    return grant != nullptr ? grant->fence : Fence();
  }

  /// A release that records the run that ended a second ago.
  ReleaseRequest release_of_run(Fence fence, Token with = token()) {
    ReleaseRequest request{resource_, std::move(with)};
    request.run = RunRecord{PastRun{fence, 2s, 1s, 0s, "released", 0}, Instant(), /*success=*/true};
    return request;
  }

  bool exists(const std::string& key) { return redis_({"EXISTS", key}).integer == 1; }
  std::int64_t pttl(const std::string& key) { return redis_({"PTTL", key}).integer; }
  Milliseconds server_time() {
    const Reply time = redis_({"TIME"});
    return std::chrono::seconds(std::stoll(time.elements.at(0).text)) +
           Milliseconds(std::stoll(time.elements.at(1).text) / 1000);
  }

  Drive drive_;
  RealRedis redis_{drive_};
  RedisServer server_{drive_.executor(), drive_.clock(), redis_.endpoint()};
  Resource resource_;
  HelperKeys helper_;
};

void expect_some_holder(const Holder& holder, Fence fence) {
  EXPECT_FALSE(holder.foreign);
  EXPECT_EQ(holder.type, "string");
  EXPECT_EQ(holder.fence, fence);
  ASSERT_TRUE(holder.remaining.has_value());
  EXPECT_GT(*holder.remaining, 0s);
  EXPECT_LE(*holder.remaining, 30s);
  ASSERT_TRUE(holder.age.has_value());
  EXPECT_GE(*holder.age, 0s);
  EXPECT_LT(*holder.age, timeout);
  ASSERT_TRUE(holder.owner.has_value());
  Owner expected = some_owner();
  expected.supervised = holder.owner->supervised;
  EXPECT_EQ(encode_owner(*holder.owner), encode_owner(expected));
}

void expect_foreign(const Holder& holder, const std::string& type, bool expires) {
  EXPECT_TRUE(holder.foreign);
  EXPECT_EQ(holder.type, type);
  EXPECT_EQ(holder.remaining.has_value(), expires);
  EXPECT_EQ(holder.age, std::nullopt);
  EXPECT_EQ(holder.fence, std::nullopt);
  EXPECT_FALSE(holder.owner.has_value());
}

template <class Vote>
const Fault& fault_of(const Vote& vote) {
  static const Fault none{FaultKind::silent, "no fault"};
  const auto* fault = std::get_if<Fault>(&vote);
  EXPECT_NE(fault, nullptr) << "vote " << vote.index();
  return fault != nullptr ? *fault : none;
}

template <class Vote>
NotOurs not_ours(const Vote& vote) {
  const auto* answer = std::get_if<NotOurs>(&vote);
  EXPECT_NE(answer, nullptr) << "vote " << vote.index();
  return answer != nullptr ? *answer : NotOurs{};
}

// --- acquire ---

// The uncontended case has an own way through the scripts. What keeps a call from it: that the last
// runs are wanted, and a reader whose share has ended.
TEST_F(ScriptsTest, TheUsualCaseLeavesWhatAllOthersLeave) {
  const std::string_view all = R"(
    local found = {}
    for _, key in ipairs(redis.call('KEYS', '*')) do
      local kind = redis.call('TYPE', key).ok
      local value = kind == 'hash' and redis.call('HGETALL', key) or {redis.call('GET', key)}
      table.sort(value)
      local expires = redis.call('PTTL', key) > 0 and ' expires' or ''
      found[#found + 1] = key .. expires .. ': ' .. table.concat(value, ' ')
    end
    table.sort(found)
    return (string.gsub(table.concat(found, '\n'), '%d%d%d%d%d%d%d%d%d%d%d%d%d', 'TIME')))";
  const auto what_is_left = [&] {
    redis_({"DEL", helper_.readers()});
    return redis_({"EVAL", std::string(all), "0"}).text;
  };
  std::vector<std::string> left_by_acquire;
  std::vector<std::string> left_by_release;
  for (const bool usual : {true, false}) {
    redis_({"FLUSHALL"});
    AcquireRequest acquire{resource_, token(), ttl(), some_owner()};
    acquire.wants_runs = !usual;
    const auto vote = drive_.run(server_.acquire(acquire, drive_.soon()));
    ASSERT_TRUE(std::holds_alternative<Granted>(vote));
    const Granted& grant = std::get<Granted>(vote);
    left_by_acquire.push_back(what_is_left());
    EXPECT_FALSE(grant.queue.max_ticket || grant.queue.ahead || grant.queue.queued);
    EXPECT_FALSE(grant.queue.may_change || grant.queue.offered || grant.queue.cannot_publish);

    if (!usual) redis_({"ZADD", helper_.readers(), "1", "ended"});
    const ReleaseRequest release = release_of_run(grant.fence);
    EXPECT_TRUE(
        std::holds_alternative<Released>(drive_.run(server_.release(release, drive_.soon()))));
    left_by_release.push_back(what_is_left());
  }
  EXPECT_EQ(left_by_acquire[0], left_by_acquire[1]);
  EXPECT_EQ(left_by_release[0], left_by_release[1]);
  EXPECT_NE(left_by_release[0].find(helper_.last() + " expires: "), std::string::npos)
      << left_by_release[0];
}

TEST_F(ScriptsTest, AcquireTakesAFreeLock) {
  const auto vote = acquire(token());
  ASSERT_TRUE(std::holds_alternative<Granted>(vote));
  EXPECT_EQ(std::get<Granted>(vote).id.text,
            redis_({"EVAL", "return redis.sha1hex(ARGV[1])", "0", token().secret()}).text);
  EXPECT_EQ(redis_({"GET", "deploy"}).text, token().secret());
  EXPECT_GT(pttl("deploy"), 20'000);
  EXPECT_LE(pttl("deploy"), 30'000);
}

TEST_F(ScriptsTest, AcquireIsRefusedByForeignLocks) {
  const std::vector<std::pair<Command, bool>> foreign_locks{
      {{"SET", "deploy", "another library's token", "PX", "30000"}, true},
      {{"SET", "deploy", ""}, false},
      {{"SET", "deploy", token().secret() + "0"}, false},
      {{"HSET", "deploy", "uuid:1", "1"}, false},
      {{"RPUSH", "deploy", "x"}, false},
      {{"SADD", "deploy", "x"}, false},
      {{"ZADD", "deploy", "1", "x"}, false},
      {{"XADD", "deploy", "*", "a", "b"}, false},
  };
  const std::map<std::string, std::string> type_of{{"SET", "string"}, {"HSET", "hash"},
                                                   {"RPUSH", "list"}, {"SADD", "set"},
                                                   {"ZADD", "zset"},  {"XADD", "stream"}};
  for (const auto& [command, expires] : foreign_locks) {
    redis_({"DEL", "deploy"});
    redis_(command);
    const auto vote = acquire(token());
    ASSERT_TRUE(std::holds_alternative<Held>(vote)) << command.front();
    expect_foreign(std::get<Held>(vote).holder, type_of.at(command.front()), expires);
    EXPECT_TRUE(exists("deploy"));
    EXPECT_FALSE(exists(helper_.owner()));
  }
}

TEST_F(ScriptsTest, AForeignLockIsNotMistakenForAnOldLeaseOfOurs) {
  acquired(token());
  redis_({"SET", "deploy", "foreign", "PX", "30000"});  // our owner record still lies there
  const auto vote = inspect();
  ASSERT_TRUE(std::holds_alternative<Taken>(vote));
  expect_foreign(std::get<Taken>(vote).holder, "string", true);
}

TEST_F(ScriptsTest, ALockWithoutAnExpiryIsNotFreeSoon) {
  acquired(token());
  redis_({"PERSIST", "deploy"});
  const auto vote = acquire(token('b'));
  ASSERT_TRUE(std::holds_alternative<Held>(vote));
  EXPECT_EQ(std::get<Held>(vote).holder.remaining, std::nullopt);
}

TEST_F(ScriptsTest, AForeignLockMayLastLongerThanAnyClock) {
  redis_({"SET", "deploy", "foreign", "PX", "9000000000000000000"});
  const auto vote = acquire(token());
  ASSERT_TRUE(std::holds_alternative<Held>(vote));
  EXPECT_GT(std::get<Held>(vote).holder.remaining, std::chrono::hours(24 * 365));
}

TEST_F(ScriptsTest, EveryKeyHasAnEnd) {
  acquired(token());
  raise(token(), fence_in(60s));
  release_by_hand(token());
  acquired(token('b'));
  redis_({"DEL", helper_.owner()});
  raise(token('b'), fence_in(120s));  // must not make a record without an end
  heal(token('b'), Fence(1));
  for (const std::string& key :
       {std::string("deploy"), helper_.fence(), helper_.owner(), helper_.released()}) {
    EXPECT_GT(pttl(key), 0) << key;
  }
  constexpr std::int64_t month = 30LL * 24 * 3600 * 1000;
  EXPECT_GT(pttl(helper_.fence()), month);
  EXPECT_LE(pttl(helper_.fence()), month + 30'000);
  EXPECT_LE(pttl(helper_.owner()), 30'000);
  EXPECT_LE(pttl(helper_.released()), 30'000);
  EXPECT_EQ(redis_({"DBSIZE"}).integer, 4);
}

TEST_F(ScriptsTest, RaisingWithoutAnOwnerRecordLeavesNoneForEver) {
  acquired(token());
  redis_({"DEL", helper_.owner()});
  EXPECT_TRUE(std::holds_alternative<Raised>(raise(token(), fence_in(60s))));
  EXPECT_NE(pttl(helper_.owner()), -1);
}

// --- the fence ---

TEST_F(ScriptsTest, FencesRiseThoughAllDataWasLost) {
  Fence last;
  for (const char digit : random_digits) {
    // A clock that has ticked since is all there is to tell before from after.
    const Milliseconds before = server_time();
    while (server_time() == before) {
    }
    const Fence fence = acquired(token(digit));
    EXPECT_GT(fence, last);
    last = fence;
    redis_({"FLUSHALL"});
  }
}

TEST_F(ScriptsTest, TheFirstFenceIsTheServersTime) {
  const Milliseconds before = server_time();
  const Milliseconds fence(acquired(token()).value());
  EXPECT_GE(fence, before);
  EXPECT_LE(fence, server_time());
}

TEST_F(ScriptsTest, TheCounterLeadsOverTheClock) {
  const std::int64_t ahead = wall_clock_now().count() + 3'600'000;
  redis_({"SET", helper_.fence(), std::to_string(ahead)});
  EXPECT_EQ(acquired(token()), Fence(static_cast<std::uint64_t>(ahead) + 1));
  EXPECT_EQ(redis_({"GET", helper_.fence()}).text, std::to_string(ahead + 1));
}

TEST_F(ScriptsTest, TheLastFenceThereIsCanBeGranted) {
  const Fence last(Fence::max - 1);
  redis_({"SET", helper_.fence(), std::to_string(last.value() - 1)});
  EXPECT_EQ(acquired(token()), last);
  const auto extended =
      drive_.run(server_.extend({resource_, token(), ttl(), {}, last}, drive_.soon()));
  EXPECT_TRUE(std::holds_alternative<Extended>(extended));
  release(token());
  EXPECT_EQ(fault_of(acquire(token('b'))).kind, FaultKind::misconfigured);
}

TEST_F(ScriptsTest, AnUnusableCounterGrantsNothingAndLeavesNothing) {
  for (const std::string value :
       {"garbage", "", "-1", "1.5", "nan", "inf", "4503599627370495", "4503599627370496",
        "4503599627370497", "9007199254740993", "1e300", "99999999999999999999999"}) {
    redis_({"SET", helper_.fence(), value});
    EXPECT_EQ(fault_of(acquire(token())).kind, FaultKind::misconfigured) << value;
    EXPECT_FALSE(exists("deploy")) << value;
    EXPECT_FALSE(exists(helper_.owner())) << value;
    EXPECT_EQ(redis_({"GET", helper_.fence()}).text, value);
  }
  redis_({"DEL", helper_.fence()});
  redis_({"RPUSH", helper_.fence(), "x"});
  fault_of(acquire(token()));
  EXPECT_FALSE(exists("deploy"));
}

TEST_F(ScriptsTest, RaiseLiftsTheCounterAndNeverLowersIt) {
  const Fence fence = acquired(token());
  const Fence higher(fence.value() + 1000);
  EXPECT_TRUE(std::holds_alternative<Raised>(raise(token(), higher)));
  EXPECT_EQ(redis_({"GET", helper_.fence()}).text, higher.text());
  EXPECT_EQ(std::get<Taken>(inspect()).holder.fence, higher);

  EXPECT_TRUE(std::holds_alternative<Raised>(raise(token(), fence)));
  EXPECT_EQ(redis_({"GET", helper_.fence()}).text, higher.text());

  release(token());
  EXPECT_GT(acquired(token('b')), higher);
}

TEST_F(ScriptsTest, RaiseIsForTheHolderOnly) {
  EXPECT_TRUE(std::holds_alternative<NotRaised>(raise(token(), Fence(Fence::max - 10))));
  EXPECT_FALSE(exists(helper_.fence()));
  const Fence fence = acquired(token());
  EXPECT_TRUE(std::holds_alternative<NotRaised>(raise(token('b'), Fence(fence.value() + 10))));
  EXPECT_EQ(redis_({"GET", helper_.fence()}).text, fence.text());
  redis_({"DEL", "deploy"});
  redis_({"HSET", "deploy", "a", "b"});
  EXPECT_TRUE(std::holds_alternative<NotRaised>(raise(token(), Fence(fence.value() + 10))));
}

// --- extend ---

TEST_F(ScriptsTest, ExtendExtends) {
  const Fence fence = acquired(token());
  const auto vote = extend(token(), ttl(60s));
  ASSERT_TRUE(std::holds_alternative<Extended>(vote));
  EXPECT_EQ(std::get<Extended>(vote).fence, fence);
  EXPECT_EQ(std::get<Extended>(vote).provenance.record, encode_owner(some_owner()));
  EXPECT_FALSE(std::get<Extended>(vote).provenance.supervised);
  for (const std::string& key : {std::string("deploy"), helper_.owner()}) {
    EXPECT_GT(pttl(key), 50'000) << key;
    EXPECT_LE(pttl(key), 60'000) << key;
  }
}

TEST_F(ScriptsTest, ExtendKeepsTheLeasesFenceAndNeverLowersTheCounter) {
  const Fence late = acquired(token());
  const auto extend_with = [&](Fence fence) {
    const auto vote =
        drive_.run(server_.extend({resource_, token(), ttl(), {}, fence}, drive_.soon()));
    const auto* extended = std::get_if<Extended>(&vote);
    return extended != nullptr ? extended->fence : Fence();
  };
  EXPECT_EQ(extend_with(Fence()), late) << "not known";
  const Fence larger = fence_in(60s);
  EXPECT_EQ(extend_with(larger), larger);
  EXPECT_EQ(redis_({"GET", helper_.fence()}).text, larger.text());
  EXPECT_EQ(extend_with(late), late);
  EXPECT_EQ(redis_({"GET", helper_.fence()}).text, larger.text());
  redis_({"SET", helper_.fence(), "garbage"});
  EXPECT_EQ(extend_with(larger), late) << "extended all the same";

  redis_({"FLUSHALL"});
  const Mode shared{true, 0};
  ASSERT_TRUE(std::holds_alternative<Granted>(drive_.run(
      server_.acquire({resource_, token(), ttl(), some_owner(), shared}, drive_.soon()))));
  EXPECT_EQ(extend_with(larger), larger);
}

// As a demoted master does, which keeps its clients.
TEST_F(ScriptsTest, NothingIsExtendedWhereNothingCanBeWritten) {
  acquired(token());
  redis_({"CONFIG", "SET", "min-replicas-to-write", "1"});
  EXPECT_TRUE(std::holds_alternative<Fault>(extend(token(), ttl(60s))));
  EXPECT_TRUE(std::holds_alternative<Fault>(extend(token(), ttl(1s))));
  redis_({"CONFIG", "SET", "min-replicas-to-write", "0"});
}

TEST_F(ScriptsTest, ExtendGivesAnEndBackToALockThatLostIt) {
  acquired(token());
  redis_({"PERSIST", "deploy"});
  EXPECT_TRUE(std::holds_alternative<Extended>(extend(token())));
  EXPECT_GT(pttl("deploy"), 20'000);
}

TEST_F(ScriptsTest, ExtendCountsThoughTheOwnerRecordIsGone) {
  acquired(token());
  redis_({"DEL", helper_.owner()});
  const auto vote = extend(token());
  ASSERT_TRUE(std::holds_alternative<Extended>(vote));
  EXPECT_EQ(std::get<Extended>(vote).fence, Fence());
}

TEST_F(ScriptsTest, ExtendDoesNotResurrect) {
  acquired(token());
  redis_({"DEL", "deploy"});
  EXPECT_EQ(not_ours(extend(token())).why, NotOurs::Why::gone);
  EXPECT_FALSE(exists("deploy"));
}

TEST_F(ScriptsTest, ExtendReportsWhoHasItNow) {
  const Fence fence = acquired(token('a'));
  const NotOurs answer = not_ours(extend(token('b')));
  EXPECT_EQ(answer.why, NotOurs::Why::held);
  ASSERT_TRUE(answer.holder.has_value());
  expect_some_holder(*answer.holder, fence);

  redis_({"DEL", "deploy"});
  redis_({"HSET", "deploy", "a", "b"});
  const NotOurs foreign = not_ours(extend(token('a')));
  EXPECT_EQ(foreign.why, NotOurs::Why::held);
  ASSERT_TRUE(foreign.holder.has_value());
  expect_foreign(*foreign.holder, "hash", false);
}

TEST_F(ScriptsTest, ExtendReportsThatItWasReleasedByHandThoughAnotherHoldsItNow) {
  acquired(token('a'));
  EXPECT_TRUE(std::holds_alternative<Released>(release_by_hand(token('a'))));
  acquired(token('b'));
  EXPECT_EQ(not_ours(extend(token('a'))).why, NotOurs::Why::released);
  EXPECT_EQ(not_ours(extend(token('c'))).why, NotOurs::Why::held);
  EXPECT_EQ(redis_({"GET", "deploy"}).text, token('b').secret());
}

// --- heal ---

TEST_F(ScriptsTest, HealGivesALostLeaseBack) {
  const Fence fence = acquired(token());
  redis_({"FLUSHALL"});
  EXPECT_TRUE(std::holds_alternative<Healed>(
      heal(token(), fence, {1500ms, true, encode_owner(some_owner())})));
  EXPECT_EQ(redis_({"GET", "deploy"}).text, token().secret());
  EXPECT_GT(pttl("deploy"), 20'000);
  const auto vote = inspect();
  ASSERT_TRUE(std::holds_alternative<Taken>(vote));
  const Holder& holder = std::get<Taken>(vote).holder;
  expect_some_holder(holder, fence);
  EXPECT_GE(*holder.age, 1500ms);
  EXPECT_TRUE(holder.owner->supervised);
  EXPECT_EQ(redis_({"GET", helper_.fence()}).text, fence.text());
}

TEST_F(ScriptsTest, HealDoesNotLowerTheCounter) {
  const Fence fence = acquired(token());
  redis_({"DEL", "deploy"});
  EXPECT_TRUE(std::holds_alternative<Healed>(heal(token(), Fence(5))));
  EXPECT_EQ(redis_({"GET", helper_.fence()}).text, fence.text());
}

TEST_F(ScriptsTest, HealBringsTheFenceToAServerThatGrantedTheLeaseLate) {
  acquired(token());
  const Fence larger = fence_in(60s);
  EXPECT_TRUE(std::holds_alternative<Healed>(heal(token(), larger)));
  EXPECT_EQ(redis_({"GET", helper_.fence()}).text, larger.text());
  EXPECT_EQ(redis_({"HGET", helper_.owner(), "fence"}).text, larger.text());
}

TEST_F(ScriptsTest, HealLeavesOthersAlone) {
  const Fence fence = acquired(token('a'));
  const NotOurs answer = not_ours(heal(token('b'), Fence(1)));
  EXPECT_EQ(answer.why, NotOurs::Why::held);
  ASSERT_TRUE(answer.holder.has_value());
  expect_some_holder(*answer.holder, fence);
  EXPECT_EQ(redis_({"GET", "deploy"}).text, token('a').secret());

  redis_({"DEL", "deploy"});
  redis_({"RPUSH", "deploy", "x"});
  EXPECT_EQ(not_ours(heal(token('b'), Fence(1))).why, NotOurs::Why::held);
  EXPECT_EQ(redis_({"TYPE", "deploy"}).text, "list");
}

TEST_F(ScriptsTest, HealDoesNotBringBackWhatWasBrokenByForce) {
  const Fence fence = acquired(token());
  Owner breaker = some_owner();
  breaker.note = "it hangs";
  ASSERT_TRUE(std::holds_alternative<Broken>(break_lock({}, breaker)));
  const NotOurs answer = not_ours(heal(token(), fence));
  EXPECT_EQ(answer.why, NotOurs::Why::gone);
  ASSERT_TRUE(answer.breaker.has_value());
  EXPECT_EQ(answer.breaker->note, "it hangs");
  EXPECT_FALSE(exists("deploy"));
}

TEST_F(ScriptsTest, HealOfAShareReportsWhatCouldNotBeWritten) {
  redis_({"ACL", "SETUSER", "default", "-hset"});
  const HealRequest share{resource_, token(), ttl(), Fence(1), {1500ms, true, "{}"}, {true, {}}};
  EXPECT_EQ(fault_of(drive_.run(server_.heal(share, drive_.soon()))).kind, FaultKind::denied);
}

// --- release ---

TEST_F(ScriptsTest, ReleaseDeletesItsOwn) {
  acquired(token());
  EXPECT_TRUE(std::holds_alternative<Released>(release(token())));
  EXPECT_FALSE(exists("deploy"));
  EXPECT_FALSE(exists(helper_.owner()));
  EXPECT_FALSE(exists(helper_.released()));
  EXPECT_TRUE(exists(helper_.fence()));
  EXPECT_EQ(not_ours(release(token())).why, NotOurs::Why::gone);
}

TEST_F(ScriptsTest, ReleaseLeavesOthersAlone) {
  const Fence fence = acquired(token('a'));
  const NotOurs answer = not_ours(release(token('b')));
  EXPECT_EQ(answer.why, NotOurs::Why::held);
  ASSERT_TRUE(answer.holder.has_value());
  expect_some_holder(*answer.holder, fence);
  EXPECT_EQ(not_ours(release_by_hand(token('b'))).why, NotOurs::Why::held);
  EXPECT_EQ(redis_({"GET", "deploy"}).text, token('a').secret());
  EXPECT_FALSE(exists(helper_.released()));

  redis_({"DEL", "deploy"});
  redis_({"HSET", "deploy", "a", "b"});
  EXPECT_EQ(not_ours(release(token('a'))).why, NotOurs::Why::held);
  EXPECT_TRUE(exists("deploy"));
}

TEST_F(ScriptsTest, ReleaseLeavesAnotherLeasesRecordAlone) {
  acquired(token());
  redis_({"HSET", helper_.owner(), "lease", "another"});
  EXPECT_TRUE(std::holds_alternative<Released>(release(token())));
  EXPECT_TRUE(exists(helper_.owner()));
}

TEST_F(ScriptsTest, AReleaseThatKeepsSaysHowTheCommandEnded) {
  Owner owner = some_owner();
  owner.supervised = true;
  acquired(token('a'), owner);
  owner.finished = Finished{10s, 3, std::nullopt};
  ReleaseRequest request{resource_, token('a'), /*by_hand=*/false, 10s};
  request.finished = owner;
  (void)drive_.run(server_.release(request, drive_.soon()));
  const auto vote = acquire(token('b'));
  ASSERT_TRUE(std::holds_alternative<Held>(vote));
  const auto& known = std::get<Held>(vote).holder.owner;
  ASSERT_TRUE(known.has_value() && known->finished.has_value());
  EXPECT_EQ(known->finished->exit_code, 3);
  EXPECT_EQ(known->finished->expire_in, 10s);
  EXPECT_TRUE(known->supervised);
}

TEST_F(ScriptsTest, AReleaseThatKeepsMayKeepLongerThanTheTtl) {
  acquired(token());
  EXPECT_TRUE(std::holds_alternative<Released>(release_after(90s, token())));
  EXPECT_GT(pttl("deploy"), 60'000);
  EXPECT_LE(pttl("deploy"), 90'000);
  EXPECT_GT(pttl(helper_.owner()), 60'000);
}

TEST_F(ScriptsTest, AReleaseThatKeepsLeavesOthersAlone) {
  acquired(token('a'));
  EXPECT_EQ(not_ours(release_after(1ms, token('b'))).why, NotOurs::Why::held);
  EXPECT_EQ(redis_({"GET", "deploy"}).text, token('a').secret());
  EXPECT_GT(pttl("deploy"), 20'000);
  EXPECT_GT(pttl(helper_.owner()), 20'000);
  redis_({"DEL", "deploy"});
  EXPECT_EQ(not_ours(release_after(1ms, token('a'))).why, NotOurs::Why::gone);
  EXPECT_FALSE(exists("deploy"));
}

TEST_F(ScriptsTest, ReleaseByHandLeavesATombstoneForAsLongAsTheLeaseHad) {
  acquired(token());
  EXPECT_TRUE(std::holds_alternative<Released>(release_by_hand(token())));
  EXPECT_FALSE(exists("deploy"));
  EXPECT_GT(pttl(helper_.released()), 20'000);
  EXPECT_LE(pttl(helper_.released()), 30'000);
  EXPECT_EQ(
      redis_({"ZRANGE", helper_.released(), "0", "-1"}).elements.at(0).text.find(token().secret()),
      std::string::npos);
}

TEST_F(ScriptsTest, AReleaseByHandThatKeepsLeavesNoTombstone) {
  acquired(token());
  const ReleaseRequest keeps{resource_, token(), /*by_hand=*/true, 5s};
  EXPECT_TRUE(std::holds_alternative<Released>(drive_.run(server_.release(keeps, drive_.soon()))));
  EXPECT_GT(pttl("deploy"), 0);
  EXPECT_LE(pttl("deploy"), 5'000);
  EXPECT_FALSE(exists(helper_.released()));
}

TEST_F(ScriptsTest, ARunThatIsWrittenInNoKnownWayIsNotRecorded) {
  const Fence fence = acquired(token());
  ScriptCall call = release_call(release_of_run(fence));
  call.arguments[protocol::argument::release::run].insert(0, "later ");
  const auto vote =
      release_vote(drive_
                       .run(server_.answer_to(std::move(call), /*asking=*/false,
                                              StepTime(drive_.clock(), drive_.soon())))
                       .reply);
  ASSERT_TRUE(std::holds_alternative<Released>(vote));
  EXPECT_FALSE(std::get<Released>(vote).recorded);
  EXPECT_FALSE(exists("deploy"));
  EXPECT_FALSE(exists(helper_.last()));
}

/// The lines of what is stored of the last runs.
std::vector<std::string> lines_of(const std::string& stored) {
  std::istringstream text(stored);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST_F(ScriptsTest, AReleaseThatIsRepeatedKeepsOneRun) {
  for (const bool keeps : {true, false}) {
    const Token own = token(keeps ? 'a' : 'b');
    ReleaseRequest request = release_of_run(acquired(own), own);
    request.expire_in = 5s;
    drive_.run(server_.release(request, drive_.soon()));
    // Another release of the lease that --min-hold keeps, late.
    request.run->run.exit_code = 3;
    if (!keeps) request.expire_in = 0s;
    drive_.run(server_.release(request, drive_.soon()));
    redis_({"DEL", "deploy"});
  }
  const auto lines = lines_of(redis_({"GET", helper_.last()}).text);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_NE(lines[4].find(" released 3 "), std::string::npos) << lines[4];
  EXPECT_NE(lines[5].find(" released 3 "), std::string::npos) << lines[5];
  EXPECT_EQ(lines[4].substr(lines[4].find(' ') + 1), lines[1]);
}

TEST_F(ScriptsTest, TwoSharesOfOneFenceAreTwoRuns) {
  const Mode shared{.shared = true};
  for (const char digit : {'a', 'b'}) {
    drive_.run(
        server_.acquire({resource_, token(digit), ttl(), some_owner(), shared}, drive_.soon()));
    drive_.run(server_.release(release_of_run(Fence(7), token(digit)), drive_.soon()));
  }
  EXPECT_EQ(lines_of(redis_({"GET", helper_.last()}).text).size(), 6U);
}

TEST_F(ScriptsTest, TheRunsThatAnOlderVersionRecordedStayTheLastOnes) {
  const Fence fence = acquired(token());
  redis_({"SET", helper_.last(), "60000 1 7\n1 9 1 2 3 lost - 15 {}\n1 7 1 2 3 released 0 - {}"});
  drive_.run(server_.release(release_of_run(fence), drive_.soon()));
  const auto lines = lines_of(redis_({"GET", helper_.last()}).text);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[2], "") << "the last run is the last success";
  EXPECT_EQ(lines[5], "- 1 9 1 2 3 lost - 15 {}");
}

TEST_F(ScriptsTest, ASkipIsCountedUntilTheNextRunAndIsNoRun) {
  const auto skip = [&] {
    EXPECT_TRUE(std::holds_alternative<Counted>(
        drive_.run(server_.count_skip(resource_, "busy", drive_.soon()))));
  };
  const auto runs = [&] {
    const auto vote = inspect();
    const auto* taken = std::get_if<Taken>(&vote);
    return taken != nullptr ? taken->runs : std::get<Free>(vote).runs;
  };
  skip();
  EXPECT_EQ(runs().skips->number, 1);
  EXPECT_FALSE(runs().last || runs().success || runs().newer);

  const Fence fence = acquired(token());
  ReleaseRequest request = release_of_run(fence);
  request.expire_in = 5s;
  drive_.run(server_.release(request, drive_.soon()));
  EXPECT_FALSE(runs().skips);
  skip();
  skip();
  // The same release once more is no other run.
  drive_.run(server_.release(request, drive_.soon()));
  const LastRuns remembered = runs();
  ASSERT_TRUE(remembered.skips && remembered.success);
  EXPECT_EQ(remembered.skips->number, 2);
  EXPECT_EQ(remembered.skips->why, "busy");
  EXPECT_GE(remembered.skips->first, remembered.skips->last);
  EXPECT_EQ(remembered.success->fence, fence);
  EXPECT_EQ(remembered.kept.at(0).fence, fence);
}

TEST_F(ScriptsTest, RunsAreKeptOnlyAsFarAsClientsCanReadThem) {
  Owner owner = some_owner();
  owner.note = std::string(max_owner_field, '\x01');  // six bytes each as JSON writes them
  for (const char digit : std::string("01234567")) {
    const Fence fence = acquired(token(digit), owner);
    drive_.run(server_.release(release_of_run(fence, token(digit)), drive_.soon()));
  }
  const std::string stored = redis_({"GET", helper_.last()}).text;
  EXPECT_GT(lines_of(stored).size(), 6U);
  EXPECT_LT(stored.size(), 32U * 1024);
}

/// Else the period would be open, and the run made again.
TEST_F(ScriptsTest, WhoAsksForTheLastRunsIsNotToldThatThereAreNoneWhereTheyCannotBeRead) {
  redis_({"SADD", helper_.last(), "x"});
  AcquireRequest request{resource_, token(), ttl(), some_owner()};
  request.wants_runs = true;
  EXPECT_NE(fault_of(drive_.run(server_.acquire(request, drive_.soon()))).text.find("WRONGTYPE"),
            std::string::npos);
  EXPECT_FALSE(exists("deploy"));
  EXPECT_TRUE(std::holds_alternative<Free>(inspect()));
  request.wants_runs = false;
  EXPECT_TRUE(std::holds_alternative<Granted>(drive_.run(server_.acquire(request, drive_.soon()))));
}

TEST_F(ScriptsTest, TombstonesGoWhenTheyHaveServed) {
  redis_({"ZADD", helper_.released(), "1", "old"});
  acquired(token());
  release_by_hand(token());
  const Reply left = redis_({"ZRANGE", helper_.released(), "0", "-1"});
  ASSERT_EQ(left.elements.size(), 1U);
  EXPECT_NE(left.elements[0].text, "old");
}

TEST_F(ScriptsTest, TombstonesOfALockWithoutAnExpiryHaveAnEnd) {
  // What the record still tells of the lease's end counts, else a time that covers usual leases.
  for (const bool has_record_end : {true, false}) {
    for (const bool breaks : {true, false}) {
      redis_({"FLUSHALL"});
      acquired(token());
      redis_({"PERSIST", "deploy"});
      if (!has_record_end) redis_({"PERSIST", helper_.owner()});
      if (breaks) {
        EXPECT_TRUE(std::holds_alternative<Broken>(break_lock({}, {"ops1", "root", "", "", 0})));
        EXPECT_TRUE(not_ours(extend(token())).breaker.has_value());
      } else {
        EXPECT_TRUE(std::holds_alternative<Released>(release_by_hand(token())));
        EXPECT_EQ(not_ours(extend(token())).why, NotOurs::Why::released);
      }
      EXPECT_GT(pttl(helper_.released()), has_record_end ? 20'000 : 30'000);
      EXPECT_LE(pttl(helper_.released()), has_record_end ? 30'000 : 35'000);
      // The next one does not take it for older than it is.
      acquired(token('b'));
      release_by_hand(token('b'));
      EXPECT_EQ(redis_({"ZCARD", helper_.released()}).integer, breaks ? 3 : 2);
    }
  }
}

// --- break, inspect, list ---

TEST_F(ScriptsTest, BreakIsToldToTheHolderOfTheLease) {
  const Owner breaker{"ops1", "root", "", "stuck since noon", 0};
  acquired(token('a'));
  break_lock({}, breaker);
  const auto is_told = [](const NotOurs& answer) {
    return answer.breaker && answer.breaker->host == "ops1" &&
           answer.breaker->note == "stuck since noon";
  };
  EXPECT_TRUE(is_told(not_ours(extend(token('a')))));
  EXPECT_EQ(not_ours(extend(token('a'))).why, NotOurs::Why::gone);
  // And who has it by now.
  acquired(token('b'));
  EXPECT_TRUE(is_told(not_ours(extend(token('a')))));
  EXPECT_EQ(not_ours(extend(token('a'))).why, NotOurs::Why::held);
  EXPECT_TRUE(is_told(not_ours(release(token('a')))));
  EXPECT_FALSE(not_ours(extend(token('c'))).breaker.has_value());
  // For as long as the lease would have lasted.
  EXPECT_GT(pttl(helper_.released()), 20'000);
  EXPECT_LE(pttl(helper_.released()), 30'000);
}

TEST_F(ScriptsTest, ABreakerWhoseRecordCannotBeReadIsUnknown) {
  acquired(token());
  break_lock({}, {"ops1", "root", "", "stuck since noon", 0});
  redis_({"ACL", "SETUSER", "default", "-zrangebyscore"});
  const NotOurs answer = not_ours(extend(token()));
  EXPECT_EQ(answer.why, NotOurs::Why::gone);
  ASSERT_TRUE(answer.breaker.has_value());
  EXPECT_EQ(answer.breaker->host, "");
}

TEST_F(ScriptsTest, BreakIsToldToAllWhoSharedTheLock) {
  for (const char digit : {'a', 'b', 'c'}) {
    AcquireRequest request{resource_, token(digit), ttl(), some_owner()};
    request.mode.shared = true;
    EXPECT_TRUE(
        std::holds_alternative<Granted>(drive_.run(server_.acquire(request, drive_.soon()))));
  }
  break_lock({}, {"ops1", "root", "", "", 0});
  for (const char digit : {'a', 'b', 'c'}) {
    const NotOurs answer = not_ours(extend(token(digit)));
    ASSERT_TRUE(answer.breaker.has_value()) << digit;
    EXPECT_EQ(answer.breaker->user, "root");
  }
}

TEST_F(ScriptsTest, BreakTakesAMarkerWithoutShares) {
  const AcquireRequest shared{resource_, token(), ttl(), some_owner(), Mode{true, 0}};
  ASSERT_TRUE(std::holds_alternative<Granted>(drive_.run(server_.acquire(shared, drive_.soon()))));
  redis_({"DEL", helper_.readers()});
  EXPECT_TRUE(std::holds_alternative<Broken>(break_lock()));
  EXPECT_FALSE(exists("deploy"));
}

TEST_F(ScriptsTest, BreakTakesForeignKeysOnlyWhenTheyAreNamed) {
  for (const Command& command :
       {Command{"SET", "deploy", "foreign"}, Command{"HSET", "deploy", "a", "b"},
        Command{"RPUSH", "deploy", "x"}}) {
    redis_(command);
    const auto vote = break_lock();
    const auto* left = std::get_if<ForeignKey>(&vote);
    ASSERT_NE(left, nullptr) << command.front();
    EXPECT_TRUE(left->holder.foreign);
    EXPECT_EQ(left->size, command.front() == "SET" ? 7U : 1U);

    BreakRequest request{resource_};
    request.foreign = LeaseId{"type:set"};
    EXPECT_TRUE(
        std::holds_alternative<ForeignKey>(drive_.run(server_.break_lock(request, drive_.soon()))));
    EXPECT_TRUE(exists("deploy"));
    request.foreign = left->holder.id;
    EXPECT_TRUE(
        std::holds_alternative<Broken>(drive_.run(server_.break_lock(request, drive_.soon()))));
    EXPECT_FALSE(exists("deploy"));
  }
}

TEST_F(ScriptsTest, OfALargeValueNoMoreIsReadThanTellsThatItIsForeign) {
  const std::string large(100'000, 'x');
  redis_({"SET", "deploy", large, "PX", "60000"});
  redis_({"CONFIG", "RESETSTAT"});
  EXPECT_TRUE(std::holds_alternative<ForeignKey>(break_lock()));
  const auto vote =
      drive_.run(server_.acquire({resource_, token(), ttl(), some_owner()}, drive_.soon()));
  ASSERT_TRUE(std::holds_alternative<Held>(vote));
  EXPECT_TRUE(std::get<Held>(vote).holder.foreign);
  EXPECT_EQ(not_ours(release(token())).why, NotOurs::Why::held);
  redis_({"EVAL", std::string(scripts::undo), "1", "deploy", token().secret()});
  EXPECT_TRUE(exists("deploy"));
  EXPECT_EQ(redis_({"INFO", "commandstats"}).text.find("cmdstat_get:"), std::string::npos);
}

TEST_F(ScriptsTest, AnEmptyValueIsForeignAndNotFree) {
  redis_({"SET", "deploy", "", "PX", "60000"});
  EXPECT_TRUE(std::holds_alternative<Held>(
      drive_.run(server_.acquire({resource_, token(), ttl(), some_owner()}, drive_.soon()))));
  const AcquireRequest shared{resource_, token(), ttl(), some_owner(), Mode{true, 0}};
  EXPECT_TRUE(std::holds_alternative<Held>(drive_.run(server_.acquire(shared, drive_.soon()))));
  EXPECT_TRUE(std::holds_alternative<ForeignKey>(break_lock()));
}

TEST_F(ScriptsTest, AStopRequestIsWrittenToARecordOfOursAlone) {
  const auto ask = [&](LeaseId lease) {
    const StopRequest request{"web1", "alice", "\"},{\n"};
    return drive_.run(
        server_.ask_holder({resource_, std::move(lease), {}, request}, drive_.soon()));
  };
  acquired(token());
  const LeaseId id{redis_({"HGET", helper_.owner(), "lease"}).text};
  // Of the lease that was here before.
  redis_({"HSET", helper_.owner(), "lease", "0123"});
  EXPECT_TRUE(std::get<Taken>(ask(id)).holder.foreign);
  EXPECT_TRUE(std::get<Taken>(ask(LeaseId{"0123"})).holder.foreign);
  EXPECT_EQ(redis_({"HGET", helper_.owner(), "record"}).text, encode_owner(some_owner()));

  redis_({"HSET", helper_.owner(), "lease", id.text});
  EXPECT_EQ(std::get<Taken>(ask(id)).holder.owner->stop_request->reason, "\"},{\n");
  redis_({"HSET", helper_.owner(), "record", "no record"});
  ask(id);
  EXPECT_EQ(redis_({"HGET", helper_.owner(), "record"}).text, "no record");

  redis_({"DEL", "deploy"});
  redis_({"HSET", "deploy", "a", "b"});
  EXPECT_TRUE(std::get<Taken>(ask(id)).holder.foreign);
}

TEST_F(ScriptsTest, BreakWithAFenceTakesThatLeaseOnly) {
  const Fence fence = acquired(token());
  const auto other = break_lock(Fence(fence.value() + 1));
  ASSERT_TRUE(std::holds_alternative<OtherFence>(other));
  expect_some_holder(std::get<OtherFence>(other).holder, fence);
  EXPECT_TRUE(exists("deploy"));
  EXPECT_TRUE(exists(helper_.owner()));

  EXPECT_TRUE(std::holds_alternative<Broken>(break_lock(fence)));
  EXPECT_FALSE(exists("deploy"));

  redis_({"HSET", "deploy", "a", "b"});
  EXPECT_TRUE(std::holds_alternative<OtherFence>(break_lock(fence)));
  EXPECT_TRUE(exists("deploy"));
}

TEST_F(ScriptsTest, InspectChangesNothing) {
  EXPECT_TRUE(std::holds_alternative<Free>(inspect()));
  EXPECT_EQ(redis_({"DBSIZE"}).integer, 0);
  const Fence fence = acquired(token());
  const auto vote = inspect();
  ASSERT_TRUE(std::holds_alternative<Taken>(vote));
  expect_some_holder(std::get<Taken>(vote).holder, fence);
}

/// Readers are told apart by their pids.
class SharedHolderTest : public ScriptsTest {
 protected:
  Fence share(char digit, Duration length = 30s, Mode mode = {true, 0}) {
    Owner reader = owner(digit);
    reader.slots = mode.slots;
    const AcquireRequest request{resource_, token(digit), ttl(length), reader, mode};
    const auto vote = drive_.run(server_.acquire(request, drive_.soon()));
    EXPECT_TRUE(std::holds_alternative<Granted>(vote)) << "vote " << vote.index();
    const auto* grant = std::get_if<Granted>(&vote);
    return grant != nullptr ? grant->fence : Fence();
  }

  void keep(char digit, Duration expire_in) {
    ReleaseRequest request{resource_, token(digit), /*by_hand=*/false, expire_in};
    request.finished = owner(digit);
    request.finished->finished = Finished{expire_in, 0, std::nullopt};
    EXPECT_TRUE(std::holds_alternative<Released>(
        drive_.run(server_.release(std::move(request), drive_.soon()))));
  }

  /// As a client is told that wants the lock alone; one that inspects it is told the same.
  Holder holder() {
    const auto refused = acquire(token('f'));
    const auto seen = inspect();
    const auto* held = std::get_if<Held>(&refused);
    const auto* taken = std::get_if<Taken>(&seen);
    EXPECT_TRUE(held != nullptr && taken != nullptr) << refused.index() << " " << seen.index();
    if (held == nullptr || taken == nullptr) return {};
    EXPECT_TRUE(held->holder.shared && taken->holder.shared);
    EXPECT_EQ(pid_of(held->holder), pid_of(taken->holder));
    EXPECT_EQ(held->holder.fence, taken->holder.fence);
    return taken->holder;
  }

  /// The digit of the reader that is named; nothing where none is.
  std::string named() {
    const long pid = pid_of(holder());
    return pid == 0 ? "" : std::string(1, static_cast<char>(pid));
  }

 private:
  static Owner owner(char digit) {
    Owner owner = some_owner();
    owner.supervised = true;
    owner.pid = digit;
    return owner;
  }
  static long pid_of(const Holder& holder) { return holder.owner ? holder.owner->pid : 0; }
};

TEST_F(SharedHolderTest, IsTheLatestThatHasNotReleasedItsShare) {
  const Fence first = share('a');
  const Fence second = share('b');
  share('c');
  EXPECT_EQ(named(), "c");
  release(token('c'));
  EXPECT_EQ(named(), "b");
  EXPECT_EQ(holder().fence, second);
  EXPECT_TRUE(holder().owner->supervised);
  // The order is that of the fences, not that of the ends.
  extend(token('a'), ttl(60s));
  EXPECT_EQ(named(), "b");
  release(token('b'));
  EXPECT_EQ(named(), "a");
  EXPECT_EQ(holder().fence, first);
  share('d');
  EXPECT_EQ(named(), "d");
}

TEST_F(SharedHolderTest, HasNotExpired) {
  share('a');
  share('b', 300ms);
  EXPECT_EQ(named(), "b");
  const auto end = server_time() + 300ms;
  while (server_time() <= end) {
  }
  EXPECT_EQ(named(), "a");
}

TEST_F(SharedHolderTest, IsRightWhereAnOlderVersionReleasedAShare) {
  share('a');
  share('b', 60s);
  const Reply last = redis_({"ZRANGE", helper_.readers(), "1", "1"});
  redis_({"ZREM", helper_.readers(), last.elements.at(0).text});
  EXPECT_EQ(named(), "a");
}

TEST_F(SharedHolderTest, IsTheSlotsAgainWhenAPlainReaderHasGone) {
  share('a', 30s, {true, 2});
  share('b');
  EXPECT_EQ(holder().owner->slots, 0);
  release(token('b'));
  EXPECT_EQ(holder().owner->slots, 2);
  EXPECT_EQ(named(), "a");
}

TEST_F(SharedHolderTest, IsOneThatRunsBeforeOneThatIsKept) {
  share('a');
  share('b');
  share('c');
  keep('c', 60s);
  EXPECT_EQ(named(), "b");
  // Of those that are kept it is the one that ends last, as the lock does.
  keep('b', 90s);
  keep('a', 80s);
  EXPECT_EQ(named(), "b");
  EXPECT_GT(holder().remaining, 80s);
  ASSERT_TRUE(holder().owner->finished.has_value());
  EXPECT_EQ(holder().owner->finished->expire_in, 90s);
}

TEST_F(SharedHolderTest, IsKnownWithoutTheOwnerRecordButForTheAge) {
  const Fence fence = share('a');
  redis_({"SET", helper_.owner(), "no hash"});
  EXPECT_EQ(named(), "a");
  EXPECT_EQ(holder().fence, fence);
  EXPECT_EQ(holder().age, std::nullopt);
}

TEST_F(SharedHolderTest, IsAskedToStopByTheSlotOfItsShare) {
  const Mode slots{true, 3};
  share('a', 30s, slots);
  share('b', 30s, slots);
  const auto ask = [&](std::optional<LeaseId> lease, std::optional<std::string> slot) {
    const StopRequest request{"web1", "alice", "why"};
    return drive_.run(
        server_.ask_holder({resource_, std::move(lease), std::move(slot), request}, drive_.soon()));
  };
  EXPECT_TRUE(std::holds_alternative<Free>(ask({}, "2")));
  // The table of slots may have been lost.
  redis_({"DEL", helper_.slots()});
  const auto seen = ask({}, "1");
  ASSERT_TRUE(std::holds_alternative<Taken>(seen));
  const Holder second = std::get<Taken>(seen).holder;
  EXPECT_EQ(second.owner->pid, 'b');
  EXPECT_FALSE(second.shared);

  ask(second.id, {});
  EXPECT_TRUE(std::get<Taken>(ask({}, "1")).holder.owner->stop_request);
  EXPECT_FALSE(std::get<Taken>(ask({}, "0")).holder.owner->stop_request);
  const auto extended = [&](char digit, std::size_t slot) {
    return std::get<Extended>(
        drive_.run(server_.extend({resource_, token(digit), ttl(), Slots{slot}}, drive_.soon())));
  };
  EXPECT_EQ(extended('b', 1).stop_request->reason, "why");
  EXPECT_FALSE(extended('a', 0).stop_request);
  EXPECT_TRUE(std::get<Taken>(ask(LeaseId{"another"}, {})).holder.shared);

  redis_({"SET", helper_.shares(), "no hash"});
  EXPECT_TRUE(std::holds_alternative<Fault>(ask({}, "1"))) << "not a free slot";
}

TEST_F(SharedHolderTest, IsUnknownWithoutReadableShares) {
  share('a');
  const std::string id = redis_({"ZRANGE", helper_.readers(), "0", "0"}).elements.at(0).text;
  share('b');
  redis_({"HSET", helper_.shares(), id, "no share"});
  EXPECT_EQ(named(), "b");
  release(token('b'));
  EXPECT_EQ(named(), "");
  EXPECT_EQ(holder().fence, std::nullopt);
  redis_({"SET", helper_.shares(), "no hash"});
  EXPECT_EQ(named(), "");
  // The marker alone.
  redis_({"DEL", helper_.readers()});
  EXPECT_EQ(named(), "");
  EXPECT_EQ(holder().fence, std::nullopt);
}

TEST_F(SharedHolderTest, IsWhoseFenceBreaksTheLock) {
  const Fence first = share('a');
  const Fence second = share('b');
  release(token('b'));
  EXPECT_TRUE(std::holds_alternative<OtherFence>(break_lock(second)));
  EXPECT_TRUE(std::holds_alternative<Broken>(break_lock(first)));
}

TEST_F(ScriptsTest, ListFindsEveryLockOfOurs) {
  EXPECT_EQ(list(), std::vector<std::string>{});
  const std::vector<std::string> keys{
      std::string("\0\xff\n*?[", 6), "a key", "deploy", "{tag}rest", "{}x", "}{", "}"};
  std::vector<std::string> expected(keys);
  std::sort(expected.begin(), expected.end());
  for (const std::string& key : keys) {
    const auto vote =
        drive_.run(server_.acquire({resource(key), token(), ttl(), some_owner()}, drive_.soon()));
    ASSERT_TRUE(std::holds_alternative<Granted>(vote)) << key;
  }
  redis_({"SET", "foreign", "x"});
  redis_({"SET", "redlock:owner:{no}such", "x"});
  EXPECT_EQ(list(), expected);
}

TEST_F(ScriptsTest, ListTakesManyPages) {
  std::vector<std::string> expected;
  for (int i = 1000; i < 3000; ++i) {
    redis_({"HSET", "redlock:owner:{" + std::to_string(i) + "}", "lease", "x"});
    expected.push_back(std::to_string(i));
  }
  EXPECT_EQ(list(), expected);
}

// --- servers in trouble ---

TEST_F(ScriptsTest, WithoutMemoryNothingIsAcquiredButLeasesLiveOn) {
  acquired(token('a'));
  redis_({"CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1kb"});
  const auto other = drive_.run(
      server_.acquire({resource("other"), token('b'), ttl(), some_owner()}, drive_.soon()));
  EXPECT_EQ(fault_of(other).kind, FaultKind::unavailable);
  EXPECT_NE(fault_of(other).text.find("out of memory"), std::string::npos);
  EXPECT_FALSE(exists("other"));
  EXPECT_FALSE(exists(HelperKeys(resource("other")).owner()));

  EXPECT_TRUE(std::holds_alternative<Extended>(extend(token('a'), ttl(60s))));
  EXPECT_GT(pttl("deploy"), 50'000);
  EXPECT_TRUE(std::holds_alternative<Taken>(inspect()));
  EXPECT_TRUE(std::holds_alternative<Released>(release_by_hand(token('a'))));
  EXPECT_FALSE(exists("deploy"));
}

TEST_F(ScriptsTest, WithoutMemoryARunIsRecorded) {
  const Fence fence = acquired(token());
  redis_({"CONFIG", "SET", "maxmemory", "1"});
  const auto vote = drive_.run(server_.release(release_of_run(fence), drive_.soon()));
  ASSERT_TRUE(std::holds_alternative<Released>(vote));
  EXPECT_TRUE(std::get<Released>(vote).recorded);
  redis_({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(ScriptsTest, WithoutMemorySharesLiveOn) {
  for (const Mode& mode : {Mode{true, 0}, Mode{true, 2}}) {
    redis_({"CONFIG", "SET", "maxmemory", "0"});
    const Slots slots = mode.slots > 0 ? Slots{0} : Slots();
    const auto share = drive_.run(
        server_.acquire({resource_, token(), ttl(30s), some_owner(), mode}, drive_.soon()));
    ASSERT_TRUE(std::holds_alternative<Granted>(share));
    redis_({"CONFIG", "SET", "maxmemory", "1"});
    const auto extended =
        drive_.run(server_.extend({resource_, token(), ttl(60s), slots}, drive_.soon()));
    EXPECT_TRUE(std::holds_alternative<Extended>(extended));
    EXPECT_GT(pttl("deploy"), 30'000);
    EXPECT_TRUE(std::holds_alternative<Released>(release_after(5s, token())));
    EXPECT_LE(pttl("deploy"), 5000);
    EXPECT_TRUE(std::holds_alternative<Released>(release(token())));
    EXPECT_FALSE(exists("deploy"));
  }
  redis_({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(ScriptsTest, AFailedAttemptKeepsItsPositionWithoutMemory) {
  AcquireRequest wanted{resource_, token(), ttl(), some_owner()};
  wanted.entry = QueueEntry{"me", 1, true, 30s};
  ASSERT_TRUE(std::holds_alternative<Granted>(drive_.run(server_.acquire(wanted, drive_.soon()))));
  redis_({"CONFIG", "SET", "maxmemory", "1"});
  ReleaseRequest back{resource_, token()};
  back.requeue = Requeue{*wanted.entry, Mode{}, some_owner()};
  EXPECT_TRUE(std::holds_alternative<Released>(drive_.run(server_.release(back, drive_.soon()))));
  EXPECT_EQ(redis_({"ZCARD", helper_.queue()}).integer, 1);
  EXPECT_EQ(redis_({"HLEN", helper_.waiters()}).integer, 1);
  redis_({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(ScriptsTest, AWaiterThatPollsKeepsItsPositionWithoutMemory) {
  acquired(token('a'));
  AcquireRequest wanted{resource_, token('b'), ttl(), some_owner()};
  wanted.entry = QueueEntry{"me", 1, true, 30s};
  redis_({"CONFIG", "SET", "maxmemory", "1"});
  for (const bool was_queued : {false, true}) {
    const auto vote = drive_.run(server_.acquire(wanted, drive_.soon()));
    ASSERT_TRUE(std::holds_alternative<Held>(vote)) << vote.index();
    EXPECT_TRUE(std::get<Held>(vote).queue.queued);
    EXPECT_EQ(std::get<Held>(vote).queue.was_queued, was_queued);
  }
  redis_({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(ScriptsTest, ANewerWaiterSupersedesAnOlderOneWithoutMemory) {
  acquired(token('a'));
  AcquireRequest older{resource_, token('b'), ttl(), some_owner()};
  older.entry = QueueEntry{"older", 1, true, 30s};
  older.supersedes = true;
  AcquireRequest newer{resource_, token('c'), ttl(), some_owner()};
  newer.entry = QueueEntry{"newer", 2, true, 30s};
  newer.supersedes = true;
  ASSERT_TRUE(std::holds_alternative<Held>(drive_.run(server_.acquire(older, drive_.soon()))));
  redis_({"CONFIG", "SET", "maxmemory", "1"});
  ASSERT_TRUE(std::holds_alternative<Held>(drive_.run(server_.acquire(newer, drive_.soon()))));
  const auto vote = drive_.run(server_.acquire(older, drive_.soon()));
  ASSERT_TRUE(std::holds_alternative<Held>(vote));
  EXPECT_EQ(std::get<Held>(vote).queue.superseder, "newer");
  redis_({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(ScriptsTest, ANewestSupersederOfANewerVersionIsNeitherPassedNorForgotten) {
  redis_({"HSET", helper_.waiters(), "+", "{\"ticket\": 7}"});
  AcquireRequest request{resource_, token(), ttl(), some_owner()};
  request.supersedes = true;
  request.entry = QueueEntry{"me", 9, false, 35s};
  EXPECT_NE(
      fault_of(drive_.run(server_.acquire(request, drive_.soon()))).text.find("newer version"),
      std::string::npos);
  EXPECT_EQ(redis_({"HGET", helper_.waiters(), "+"}).text, "{\"ticket\": 7}");
  EXPECT_FALSE(exists("deploy"));
}

TEST_F(ScriptsTest, WaitersLearnOfAHolderThatCannotPublish) {
  const auto cannot_publish = [&](Mode mode) {
    AcquireRequest wanted{resource_, token('c'), ttl(), some_owner(), mode};
    wanted.entry = QueueEntry{"me", 1, false, 30s};
    const auto vote = drive_.run(server_.acquire(wanted, drive_.soon()));
    const auto* refused = std::get_if<Held>(&vote);
    return refused != nullptr && refused->queue.cannot_publish;
  };
  const auto called_at = [&] {
    std::istringstream entry(redis_({"HGET", helper_.waiters(), "me"}).text);
    std::string mode, polls, ends, notified;
    entry >> mode >> polls >> ends >> notified;
    return notified;
  };
  acquired(token('a'));
  EXPECT_FALSE(cannot_publish({}));
  release(token('a'));

  redis_({"FLUSHALL"});
  redis_({"ACL", "SETUSER", "default", "-publish"});
  acquired(token('a'));
  EXPECT_TRUE(cannot_publish({}));
  release(token('a'));
  EXPECT_EQ(redis_({"ZCARD", helper_.queue()}).integer, 1);
  EXPECT_EQ(called_at(), "0") << "it was not notified";

  // Of those who share it one is enough, also when others come later who are not.
  redis_({"FLUSHALL"});
  const Mode shared{true, 0};
  ASSERT_TRUE(std::holds_alternative<Granted>(drive_.run(
      server_.acquire({resource_, token('a'), ttl(), some_owner(), shared}, drive_.soon()))));
  redis_({"ACL", "SETUSER", "default", "+publish"});
  ASSERT_TRUE(std::holds_alternative<Granted>(drive_.run(
      server_.acquire({resource_, token('b'), ttl(), some_owner(), shared}, drive_.soon()))));
  EXPECT_TRUE(cannot_publish({}));
}

TEST_F(ScriptsTest, WhoWantsASlotUnderAForeignLockWaitsForThatLock) {
  const Mode slot{true, 1};
  ASSERT_TRUE(std::holds_alternative<Granted>(drive_.run(
      server_.acquire({resource_, token('a'), ttl(), some_owner(), slot}, drive_.soon()))));
  redis_({"SET", "deploy", "another library's", "PX", "90000"});
  AcquireRequest wanted{resource_, token('b'), ttl(), some_owner(), slot};
  wanted.entry = QueueEntry{"me", 1, false, 30s};
  const auto vote = drive_.run(server_.acquire(wanted, drive_.soon()));
  ASSERT_TRUE(std::holds_alternative<Held>(vote)) << vote.index();
  const auto may_change = std::get<Held>(vote).queue.may_change;
  ASSERT_TRUE(may_change.has_value());
  EXPECT_GT(*may_change, 60s) << "not when the slot is free";
}

TEST_F(ScriptsTest, ALockIsOfferedOnlyWhenTheFirstWasNotified) {
  const Mode slot{true, 1};
  const auto wants = [&](char digit, Mode mode, const char* waiter, Ticket ticket) {
    AcquireRequest wanted{resource_, token(digit), ttl(), some_owner(), mode};
    if (ticket > 0) wanted.entry = QueueEntry{waiter, ticket, true, 30s};
    return drive_.run(server_.acquire(wanted, drive_.soon()));
  };
  ASSERT_TRUE(std::holds_alternative<Granted>(wants('a', slot, "", 0)));
  EXPECT_TRUE(std::holds_alternative<Held>(wants('b', slot, "taker", 1)));
  EXPECT_TRUE(std::holds_alternative<Held>(wants('c', {}, "writer", 2)));
  EXPECT_TRUE(std::holds_alternative<Held>(wants('b', slot, "taker", 1)));
  // The writer is asked whether it is there. The taker, which is first, was not notified since its
  // last poll.
  const AcquireVote vote = wants('d', {true, 0}, "", 0);
  ASSERT_TRUE(std::holds_alternative<Held>(vote));
  EXPECT_FALSE(std::get<Held>(vote).queue.offered);
}

// Each slot of its own would cost a call otherwise.
TEST_F(ScriptsTest, HoweverManySlotsAreTakenAcquireAndStatusTakeAFewCalls) {
  const auto calls = [&] {
    std::int64_t sum = 0;
    std::istringstream stats(redis_({"INFO", "commandstats"}).text);
    for (std::string line; std::getline(stats, line);) {
      const auto at = line.find(":calls=");
      if (at != std::string::npos) sum += std::stoll(line.substr(at + 7));
    }
    return sum;
  };
  const auto calls_of = [&](const auto& ask) {
    const std::int64_t before = calls();
    ask();
    return calls() - before;
  };
  redis_({"EVAL", R"(
    for slot = 0, 997 do
      local id = redis.sha1hex(slot)
      redis.call('ZADD', KEYS[1], 9e12 + slot, id)
      redis.call('HSET', KEYS[2], id, '1700000000000 1700000000000 1 ' .. slot .. ' {}')
      redis.call('HSET', KEYS[3], slot, id)
    end
    redis.call('SET', KEYS[4], 'redlock:shared', 'PX', 9e8))",
          "4", helper_.readers(), helper_.shares(), helper_.slots(), "deploy"});
  inspect();  // the server learns the scripts
  const auto acquire_slot = [&](char digit) {
    return drive_.run(server_.acquire(
        {resource_, token(digit), ttl(), some_owner(), Mode{true, 1000}}, drive_.soon()));
  };
  EXPECT_LE(calls_of([&] { EXPECT_EQ(std::get<Granted>(acquire_slot('a')).slots, Slots{998}); }),
            45);
  EXPECT_LE(calls_of([&] { EXPECT_EQ(std::get<Granted>(acquire_slot('b')).slots, Slots{999}); }),
            45);
  EXPECT_LE(calls_of([&] { EXPECT_TRUE(std::holds_alternative<Held>(acquire_slot('c'))); }), 45);
  EXPECT_LE(calls_of([&] { EXPECT_TRUE(std::holds_alternative<Taken>(inspect())); }), 45);
}

/// A waiter in front whose entry has another format than ours, and what becomes of it.
class NewerEntryTest : public ScriptsTest {
 protected:
  static constexpr const char* newer = "0123abcd.7";

  void is_first(std::string entry) {
    redis_({"ZADD", helper_.queue(), "1", newer});
    redis_({"HSET", helper_.waiters(), newer, std::move(entry)});
  }
  std::string ends_in(Milliseconds span) { return std::to_string((server_time() + span).count()); }
  std::string entry() { return redis_({"HGET", helper_.waiters(), newer}).text; }

  /// What a waiter behind is told.
  AcquireVote come_behind() {
    AcquireRequest wanted{resource_, token('b'), ttl(), some_owner()};
    wanted.entry = QueueEntry{"me", 2, true, 30s};
    return drive_.run(server_.acquire(wanted, drive_.soon()));
  }
  void expect_kept() {
    const std::string before = entry();
    for (int i = 0; i < 2; ++i) {
      const AcquireVote vote = come_behind();
      ASSERT_TRUE(std::holds_alternative<Queued>(vote)) << vote.index();
      EXPECT_TRUE(std::get<Queued>(vote).queue.newer);
      EXPECT_EQ(std::get<Queued>(vote).queue.ahead, 1U);
    }
    EXPECT_EQ(entry(), before);
  }
};

TEST_F(NewerEntryTest, KeepsItsPlaceUntilItEnds) {
  is_first("xy 7 " + ends_in(30s) + " whatever follows");
  expect_kept();
}

TEST_F(NewerEntryTest, IsLeftAloneByReleasesAndByThoseWhoLeave) {
  acquired(token());
  is_first("xy 7 " + ends_in(30s) + " whatever follows");
  const std::string before = entry();
  EXPECT_TRUE(std::holds_alternative<Released>(release(token())));
  server_.leave(resource_, "me");
  inspect();
  EXPECT_EQ(entry(), before);
  EXPECT_EQ(redis_({"ZSCORE", helper_.queue(), newer}).text, "1");
}

TEST_F(NewerEntryTest, IsOverWhenItSaysSo) {
  is_first("xy 7 " + ends_in(-1ms) + " whatever follows");
  EXPECT_TRUE(std::holds_alternative<Granted>(come_behind()));
  EXPECT_EQ(redis_({"ZCARD", helper_.queue()}).integer, 0);
}

TEST_F(NewerEntryTest, ThatDoesNotSayWhenItEndsLivesAsLongAsItHasASubscriber) {
  is_first("{\"mode\":\"exclusive\"}");
  EXPECT_FALSE(drive_
                   .run(server_.subscribe(
                       resource_, newer, [](Notification) {}, drive_.soon()))
                   .has_value());
  expect_kept();
  server_.unsubscribe();
  while (!redis_({"PUBSUB", "CHANNELS"}).elements.empty()) {
  }
  EXPECT_TRUE(std::holds_alternative<Granted>(come_behind()));
}

TEST_F(ScriptsTest, AReadOnlyReplicaGrantsNothing) {
  redis_({"CONFIG", "SET", "replica-serve-stale-data", "yes"});
  redis_({"REPLICAOF", "127.0.0.1", "1"});
  EXPECT_EQ(fault_of(acquire(token())).kind, FaultKind::unavailable);
  EXPECT_FALSE(exists("deploy"));
}

TEST_F(ScriptsTest, AServerThatForgotTheScriptsLearnsThemAgain) {
  Fence last;
  for (const char digit : std::string_view("012")) {
    const Fence fence = acquired(token(digit));
    EXPECT_GT(fence, last);
    last = fence;
    redis_({"SCRIPT", "FLUSH"});
    EXPECT_TRUE(std::holds_alternative<Extended>(extend(token(digit))));
    redis_({"SCRIPT", "FLUSH"});
    EXPECT_TRUE(std::holds_alternative<Released>(release(token(digit))));
    redis_({"SCRIPT", "FLUSH"});
  }
}

TEST_F(ScriptsTest, NoLockAppearsAfterItWasUndone) {
  inspect();  // connects, and teaches it the scripts
  const auto calls = [this] {
    const std::string counted = "cmdstat_evalsha:calls=";
    const std::string all = redis_({"INFO", "commandstats"}).text;
    const auto at = all.find(counted);
    return at == std::string::npos ? 0 : std::stoi(all.substr(at + counted.size()));
  };
  const int before = calls();
  redis_.pause();
  const auto vote =
      drive_.run(server_.acquire({resource_, token(), ttl(), some_owner()},
                                 drive_.clock().now() + std::chrono::milliseconds(100)));
  EXPECT_EQ(fault_of(vote).kind, FaultKind::silent);
  server_.undo(resource_, token());
  drive_.run(server_.close(drive_.clock().now() + std::chrono::milliseconds(100)));
  redis_.resume();

  // Acquire and release have run when they are counted.
  const auto end = drive_.soon();
  while (calls() < before + 2 && drive_.clock().now() < end) {
  }
  EXPECT_LT(drive_.clock().now(), end) << "acquire or release did not arrive";
  EXPECT_FALSE(exists("deploy"));
  EXPECT_TRUE(exists(helper_.fence())) << "the acquire never ran, so nothing was shown";
}

// --- servers without a vote ---

/// A server that takes no writes, for any of these reasons, says nothing about a lease (D4).
class NoWritesTest : public ScriptsTest {
 protected:
  template <class Vote>
  static void expect_refusal(const Vote& vote) {
    const Fault* const fault = std::get_if<Fault>(&vote);
    ASSERT_NE(fault, nullptr) << "vote " << vote.index();
    EXPECT_EQ(fault->kind, FaultKind::unavailable) << fault->text;
    EXPECT_TRUE(fault->refused) << fault->text;
  }

  void expect_no_votes() {
    expect_refusal(extend(token('1')));
    expect_refusal(release(token('1')));
    expect_refusal(release_by_hand(token('1')));
    expect_refusal(acquire(token('1')));
    expect_refusal(break_lock());
    expect_refusal(drive_.run(server_.ask_holder(AskRequest{resource_}, drive_.soon())));
  }
};

TEST_F(NoWritesTest, AReplicaThatShowsAnotherLease) {
  acquired(token());
  redis_({"REPLICAOF", "127.0.0.1", "1"});
  expect_no_votes();
  expect_refusal(inspect());
}

TEST_F(NoWritesTest, AReplicaThatShowsNoLease) {
  redis_({"REPLICAOF", "127.0.0.1", "1"});
  expect_no_votes();
  expect_refusal(inspect());
  const auto listed = drive_.run(server_.list({.answer_timeout = timeout}));
  EXPECT_FALSE(listed);
}

TEST_F(NoWritesTest, AMasterWithTooFewReplicas) {
  acquired(token());
  redis_({"CONFIG", "SET", "min-replicas-to-write", "1"});
  expect_no_votes();
}

TEST_F(NoWritesTest, ButOneThatIsOutOfMemory) {
  acquired(token());
  redis_({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_TRUE(std::holds_alternative<NotOurs>(extend(token('1'))));
  EXPECT_TRUE(std::holds_alternative<Held>(acquire(token('1'))));
}

// --- rights ---

/// What a user with these rights gets to see of everything that the lock can do.
class RightsTest : public ScriptsTest {
 protected:
  static std::vector<std::string> needed() {
    return {"+eval",
            "+evalsha",
            "+get",
            "+set",
            "+del",
            "+pexpire",
            "+pttl",
            "+time",
            "+hset",
            "+hget",
            "+hmget",
            "+hdel",
            "+type",
            "+zadd",
            "+zrem",
            "+zscore",
            "+zcard",
            "+zcount",
            "+zrank",
            "+zrange",
            "+publish",
            "+zrangebyscore",
            "+zremrangebyscore"};
  }

  std::string story_of_user_with(const std::vector<std::string>& rights,
                                 const Command& keys = {"~deploy*", "~redlock:*",
                                                        "&redlock:wake:*"}) {
    redis_({"FLUSHALL"});
    redis_({"SCRIPT", "FLUSH"});
    Command set_user{"ACL", "SETUSER", "deploy", "reset", "on", ">hunter2", "-@all"};
    set_user.insert(set_user.end(), keys.begin(), keys.end());
    set_user.insert(set_user.end(), rights.begin(), rights.end());
    redis_(set_user);
    Endpoint endpoint = redis_.endpoint();
    endpoint.user = "deploy";
    endpoint.password = "hunter2";
    RedisServer server(drive_.executor(), drive_.clock(), endpoint);

    std::string story;
    const auto tell = [&](const auto& vote) {
      story += std::to_string(vote.index());
      if (const auto* fault = std::get_if<Fault>(&vote)) {
        EXPECT_EQ(fault->kind, FaultKind::denied) << fault->text;
        story += '!';
      }
      using Vote = std::decay_t<decltype(vote)>;
      if constexpr (std::is_same_v<Vote, ExtendVote> || std::is_same_v<Vote, HealVote>) {
        if (const auto* answer = std::get_if<NotOurs>(&vote))
          story += std::to_string(static_cast<int>(answer->why));
      }
      if constexpr (std::is_same_v<Vote, InspectVote>) {
        if (const auto* answer = std::get_if<Taken>(&vote))
          story += answer->holder.foreign ? 'f' : 'o';
      }
      story += ' ';
    };
    const auto acquire_as = [&](char digit) {
      tell(drive_.run(
          server.acquire({resource_, token(digit), ttl(), some_owner()}, drive_.soon())));
    };
    acquire_as('a');
    acquire_as('b');
    tell(drive_.run(
        server.raise_fence({resource_, token('a'), fence_in(60s), ttl()}, drive_.soon())));
    tell(drive_.run(server.extend({resource_, token('a'), ttl(60s)}, drive_.soon())));
    tell(drive_.run(server.inspect(resource_, std::nullopt, drive_.soon())));
    story += (pttl("deploy") > 40'000 ? "extended " : "");
    tell(drive_.run(server.release({resource_, token('a'), true}, drive_.soon())));
    tell(drive_.run(server.extend({resource_, token('a'), ttl()}, drive_.soon())));
    tell(drive_.run(server.heal({resource_, token('a'), ttl(), Fence(7), {}}, drive_.soon())));
    redis_({"ZADD", helper_.released(), "1", "old"});
    acquire_as('c');
    tell(drive_.run(server.release({resource_, token('c'), true}, drive_.soon())));
    story += std::to_string(redis_({"ZCARD", helper_.released()}).integer) + " ";
    acquire_as('d');
    redis_({"DEL", "deploy"});
    tell(drive_.run(server.heal({resource_, token('d'), ttl(), Fence(7), {}}, drive_.soon())));
    tell(drive_.run(server.break_lock({resource_}, drive_.soon())));
    redis_({"DEL", "deploy"});
    redis_({"HSET", "deploy", "a", "b"});
    tell(drive_.run(server.inspect(resource_, std::nullopt, drive_.soon())));
    redis_({"DEL", "deploy"});
    const auto share_as = [&](char digit) {
      const AcquireRequest request{resource_, token(digit), ttl(), some_owner(), Mode{true, 2}};
      tell(drive_.run(server.acquire(request, drive_.soon())));
    };
    share_as('1');
    share_as('2');
    tell(drive_.run(server.extend({resource_, token('1'), ttl(60s), {0}}, drive_.soon())));
    AcquireRequest waiting{resource_, token('3'), ttl(), some_owner()};
    waiting.entry = QueueEntry{"me", 17, false, 35s};
    tell(drive_.run(server.acquire(waiting, drive_.soon())));
    server.leave(resource_, "me");
    tell(drive_.run(server.release({resource_, token('1')}, drive_.soon())));
    tell(drive_.run(server.inspect(resource_, std::nullopt, drive_.soon())));
    tell(drive_.run(server.acquire(waiting, drive_.soon())));
    tell(drive_.run(server.release({resource_, token('2')}, drive_.soon())));
    acquire_as('4');  // the waiter hears nothing, so it is passed over
    tell(drive_.run(server.release({resource_, token('4')}, drive_.soon())));
    for (const std::string& key : helper_.all()) story += redis_({"TYPE", key}).text + " ";
    redis_({"DEL", "deploy"});
    drive_.run(server.close(drive_.soon()));
    return story;
  }

  static std::vector<std::string> without(std::vector<std::string> rights,
                                          const std::string& right) {
    std::erase(rights, right);
    return rights;
  }
};

TEST_F(RightsTest, TheDocumentedOnesAreEnough) {
  EXPECT_EQ(story_of_user_with(needed()), story_of_user_with({"+@all"}, {"~*", "&*"}));
}

TEST_F(RightsTest, NoneOfTheDocumentedOnesIsInVain) {
  const std::string whole = story_of_user_with(needed());
  for (const std::string& right : needed())
    EXPECT_NE(story_of_user_with(without(needed(), right)), whole) << right;
}

TEST_F(RightsTest, WithoutThemNothingStaysBehind) {
  for (const std::string right : {"+get", "+time", "+hset", "+pttl"}) {
    story_of_user_with(without(needed(), right));
    EXPECT_FALSE(exists("deploy")) << right;
  }
}

TEST_F(RightsTest, ListNeedsScan) {
  acquired(token());
  redis_({"ACL", "SETUSER", "deploy", "reset", "on", ">hunter2", "-@all", "~deploy*", "~redlock:*",
          "+eval"});
  Endpoint endpoint = redis_.endpoint();
  endpoint.user = "deploy";
  endpoint.password = "hunter2";
  RedisServer server(drive_.executor(), drive_.clock(), endpoint);
  const auto refused = drive_.run(server.list({.answer_timeout = timeout}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind, FaultKind::denied);
  redis_({"ACL", "SETUSER", "deploy", "+scan"});
  const auto listed = drive_.run(server.list({.answer_timeout = timeout}));
  ASSERT_TRUE(listed.has_value());
  EXPECT_EQ(listed->resources.size(), 1U);
}

TEST_F(RightsTest, AWrongLoginIsDenied) {
  redis_({"ACL", "SETUSER", "default", "-@all"});
  Endpoint endpoint = redis_.endpoint();
  endpoint.user = "deploy";
  endpoint.password = "wrong";
  RedisServer server(drive_.executor(), drive_.clock(), endpoint);
  const auto vote = drive_.run(server.inspect(resource_, std::nullopt, drive_.soon()));
  EXPECT_EQ(fault_of(vote).kind, FaultKind::denied);
  EXPECT_EQ(fault_of(vote).text.find("wrong\""), std::string::npos);
}

// --- with the lock's key alone (PROTOCOL D1: a slot on its way) ---

class ScriptsAloneTest : public ScriptsTest {
 protected:
  ScriptReply alone(ScriptCall call) {
    call.keys.resize(1);
    auto reply = drive_
                     .run(server_.answer_to(std::move(call), /*asking=*/false,
                                            StepTime(drive_.clock(), drive_.soon())))
                     .reply;
    if (reply && reply->type == Reply::Type::error) ADD_FAILURE() << reply->text;
    return reply;
  }
  /// With the keys at these positions, the lock's key in the place of the others, and once more.
  ScriptReply partial(ScriptCall call, std::initializer_list<std::size_t> here) {
    std::vector<std::string> keys(protocol::partial, call.keys.front());
    for (const std::size_t position : here) keys.at(position) = call.keys.at(position);
    call.keys = std::move(keys);
    return drive_
        .run(server_.answer_to(std::move(call), /*asking=*/false,
                               StepTime(drive_.clock(), drive_.soon())))
        .reply;
  }
  Reply run(ScriptCall call) {
    return drive_
        .run(server_.answer_to(std::move(call), /*asking=*/false,
                               StepTime(drive_.clock(), drive_.soon())))
        .reply.value();
  }
  static void expect_elsewhere(const ScriptReply& reply) {
    ASSERT_TRUE(reply.has_value()) << reply.error().text;
    EXPECT_EQ(reply->type, Reply::Type::error);
    EXPECT_NE(reply->text.find("elsewhere"), std::string::npos) << reply->text;
  }
  const LeaseId lease_id_{sha1_hex(token().secret())};

  ExtendVote extend_alone(Token with, Ttl length) {
    return extend_vote(alone(extend_call({resource_, std::move(with), length})));
  }
  ReleaseVote release_alone(Token with, bool by_hand, Duration expire_in = {}) {
    return release_vote(alone(release_call({resource_, std::move(with), by_hand, expire_in})));
  }
};

TEST_F(ScriptsAloneTest, ExtendExtendsWhatIsOurs) {
  acquired(token());
  const auto vote = extend_alone(token(), ttl(60s));
  ASSERT_TRUE(std::holds_alternative<Extended>(vote));
  EXPECT_EQ(std::get<Extended>(vote).provenance.record, "");
  EXPECT_GT(pttl("deploy"), 30'000);
  extend_alone(token(), ttl(10s));
  EXPECT_GT(pttl("deploy"), 30'000);
}

TEST_F(ScriptsAloneTest, NothingIsDoneToAnothersLease) {
  acquired(token('b'));
  EXPECT_EQ(not_ours(extend_alone(token(), ttl(60s))).why, NotOurs::Why::held);
  EXPECT_EQ(not_ours(release_alone(token(), false)).why, NotOurs::Why::held);
  EXPECT_LE(pttl("deploy"), 30'000);
  EXPECT_EQ(redis_({"GET", "deploy"}).text, token('b').secret());
}

TEST_F(ScriptsAloneTest, WhatIsGoneIsGone) {
  EXPECT_EQ(not_ours(extend_alone(token(), ttl())).why, NotOurs::Why::gone);
  EXPECT_EQ(not_ours(release_alone(token(), false)).why, NotOurs::Why::gone);
  EXPECT_FALSE(exists("deploy"));
}

TEST_F(ScriptsAloneTest, ReleaseReleasesWhatIsOurs) {
  acquired(token());
  EXPECT_TRUE(std::holds_alternative<Released>(release_alone(token(), false)));
  EXPECT_FALSE(exists("deploy"));
  acquired(token());
  EXPECT_TRUE(std::holds_alternative<Released>(release_alone(token(), false, 5s)));
  EXPECT_GT(pttl("deploy"), 0);
  EXPECT_LE(pttl("deploy"), 5'000);
}

TEST_F(ScriptsAloneTest, ReleaseByHandIsRefusedWhereTheOwnerRecordIsElsewhere) {
  acquired(token());
  expect_elsewhere(partial(release_call({resource_, token(), /*by_hand=*/true}), {}));
  EXPECT_TRUE(exists("deploy"));
  EXPECT_TRUE(std::holds_alternative<Released>(release_vote(
      partial(release_call({resource_, token(), /*by_hand=*/true}), {protocol::key::owner}))));
  EXPECT_FALSE(exists("deploy"));
}

TEST_F(ScriptsAloneTest, ReleaseByHandReleasesALockWithoutAnExpiry) {
  acquired(token());
  redis_({"PERSIST", "deploy"});
  EXPECT_TRUE(std::holds_alternative<Released>(release_vote(
      partial(release_call({resource_, token(), /*by_hand=*/true}), {protocol::key::owner}))));
  EXPECT_FALSE(exists("deploy"));
}

TEST_F(ScriptsAloneTest, NothingIsGrantedWithoutTheOtherKeys) {
  expect_elsewhere(partial(acquire_call({resource_, token(), ttl(), some_owner()}), {}));
  EXPECT_FALSE(exists("deploy"));
}

TEST_F(ScriptsAloneTest, ASlotWhoseKeysAreElsewhereIsNotGone) {
  namespace key = protocol::key;
  const AcquireRequest request{resource_, token(), ttl(), some_owner(), Mode{true, 2}};
  ASSERT_TRUE(std::holds_alternative<Granted>(drive_.run(server_.acquire(request, drive_.soon()))));
  const ScriptCall call = extend_call({resource_, token(), ttl(60s), {0}});
  expect_elsewhere(partial(call, {key::readers, key::slots}));
  expect_elsewhere(partial(call, {key::readers, key::shares}));
  EXPECT_TRUE(std::holds_alternative<Extended>(
      extend_vote(partial(call, {key::readers, key::shares, key::slots}))));
  redis_({"DEL", helper_.slots()});
  const AcquireRequest other{resource_, token('b'), ttl(), some_owner(), Mode{true, 2}};
  expect_elsewhere(partial(acquire_call(other), {key::readers}));
}

TEST_F(ScriptsAloneTest, AHolderIsAskedToStopOnlyWhereItsRecordIs) {
  namespace key = protocol::key;
  acquired(token());
  const AskRequest request{resource_, lease_id_, {}, StopRequest{"there", "you", "why"}};
  expect_elsewhere(partial(ask_call(request), {}));
  expect_elsewhere(partial(ask_call(request), {key::readers, key::released}));
  const auto vote = ask_vote(partial(ask_call(request), {key::owner}));
  ASSERT_TRUE(std::holds_alternative<Taken>(vote));
  EXPECT_FALSE(std::get<Taken>(vote).holder.foreign);
  EXPECT_TRUE(std::get<Taken>(vote).holder.owner->stop_request);
}

TEST_F(ScriptsAloneTest, AShareIsAskedToStopOnlyWhereItsDataIs) {
  namespace key = protocol::key;
  const AcquireRequest share{resource_, token(), ttl(), some_owner(), Mode{true, 2}};
  ASSERT_TRUE(std::holds_alternative<Granted>(drive_.run(server_.acquire(share, drive_.soon()))));
  const AskRequest first{resource_, {}, "0"};
  expect_elsewhere(partial(ask_call(first), {key::owner}));
  expect_elsewhere(partial(ask_call(first), {key::readers, key::slots}));
  expect_elsewhere(partial(ask_call(first), {key::readers, key::shares}));
  const AskRequest request{resource_, lease_id_, {}, StopRequest{"there", "you", "why"}};
  const auto vote = ask_vote(partial(ask_call(request), {key::readers, key::shares}));
  ASSERT_TRUE(std::holds_alternative<Taken>(vote));
  EXPECT_TRUE(std::get<Taken>(vote).holder.owner->stop_request);
}

TEST_F(ScriptsAloneTest, AnExclusiveLeaseIsGoneWithTheLocksKeyButNotAShare) {
  AskRequest request{resource_, lease_id_};
  expect_elsewhere(partial(ask_call(request), {}));
  request.exclusive = true;
  EXPECT_TRUE(std::holds_alternative<Free>(ask_vote(alone(ask_call(request)))));
}

TEST_F(ScriptsAloneTest, AReleaseWithoutTheTombstonesTellsThatItsSignIsDue) {
  namespace key = protocol::key;
  acquired(token());
  const AskRequest ask{resource_, lease_id_, {}, StopRequest{"there", "you", "why"}};
  drive_.run(server_.ask_holder(ask, drive_.soon()));
  const ScriptCall release = release_call({resource_, token()});
  const ScriptReply reply = partial(release, {key::owner});
  ASSERT_TRUE(std::holds_alternative<Released>(release_vote(reply)));
  EXPECT_FALSE(std::get<Released>(release_vote(reply)).left_to_users);
  const auto sign = rest_of(release, *reply);
  ASSERT_TRUE(sign);
  EXPECT_TRUE(std::ranges::all_of(
      sign->keys, [this](const std::string& key) { return key == helper_.released(); }));
  EXPECT_EQ(run(*sign).integer, 1);

  ScriptCall asked_again = ask_call(ask);
  asked_again.keys.resize(1);
  const Reply free = array_reply({{}, {}});
  const auto question = rest_of(asked_again, free);
  ASSERT_TRUE(question);
  EXPECT_EQ(run(*question).integer, 1);
  redis_({"DEL", helper_.released()});
  EXPECT_EQ(run(*question).integer, 0);
}

TEST_F(ScriptsAloneTest, TheTtlOfAnExtensionIsRememberedWhereTheRecordIs) {
  acquired(token());
  const ScriptCall call = extend_call({resource_, token(), ttl(10min)});
  ScriptCall alone_call = call;
  alone_call.keys.resize(1);
  const ScriptReply reply = alone(call);
  ASSERT_TRUE(std::holds_alternative<Extended>(extend_vote(reply)));
  const auto rest = rest_of(alone_call, *reply);
  ASSERT_TRUE(rest);
  EXPECT_EQ(run(*rest).integer, 1);
  extend(token(), ttl(10s));
  EXPECT_GT(pttl("deploy"), 9 * 60'000);
}

/// The keeper extends its lease while the record is elsewhere: the end of its last user must not
/// take the lease from it.
TEST_F(ScriptsAloneTest, TheEndOfTheKeeperIsMovedWhereTheRecordIs) {
  for (const bool shared : {false, true}) {
    redis_({"FLUSHALL"});
    AcquireRequest request{resource_, token(), ttl(10s), some_owner(), Mode{shared}};
    Owner owner = some_owner();
    owner.renewed_for = 10s;
    request.owner = owner;
    ASSERT_TRUE(
        std::holds_alternative<Granted>(drive_.run(server_.acquire(request, drive_.soon()))));
    ExtendRequest user{resource_, token(), ttl(1min)};
    user.user = LeaseUser{"user", encode_owner(some_owner())};
    user.is_new = true;
    ASSERT_TRUE(std::holds_alternative<Extended>(drive_.run(server_.extend(user, drive_.soon()))));

    namespace key = protocol::key;
    const ScriptCall call = extend_call({resource_, token(), ttl(30s)});
    std::vector<bool> here(key::count, true);
    here[shared ? key::shares : key::owner] = false;
    const ScriptCall part = with_keys_that_are(here, call);
    const ScriptReply reply = run(part);
    ASSERT_TRUE(std::holds_alternative<Extended>(extend_vote(reply))) << shared;
    const auto rest = rest_of(part, *reply);
    ASSERT_TRUE(rest) << shared;
    EXPECT_EQ(run(*rest).integer, 1) << shared;

    ReleaseRequest end{resource_, token()};
    end.user = "user";
    ASSERT_TRUE(std::holds_alternative<Released>(drive_.run(server_.release(end, drive_.soon()))));
    EXPECT_GT(pttl("deploy"), 20'000) << shared;
    EXPECT_LE(pttl("deploy"), 30'000) << shared;
  }
}

TEST_F(ScriptsAloneTest, ALockIsBrokenOnlyWhereItsRecordAndTheTombstonesAre) {
  namespace key = protocol::key;
  const Fence fence = acquired(token());
  BreakRequest request{resource_};
  request.only_if = Fence(fence.value() + 1);
  expect_elsewhere(partial(break_call(request), {key::released}));
  request.only_if = fence;
  expect_elsewhere(partial(break_call(request), {key::owner}));
  EXPECT_TRUE(exists("deploy"));
  EXPECT_TRUE(std::holds_alternative<Broken>(
      break_vote(partial(break_call(request), {key::owner, key::released}))));
  EXPECT_FALSE(exists("deploy"));

  const AcquireRequest share{resource_, token('b'), ttl(), some_owner(), Mode{true}};
  ASSERT_TRUE(std::holds_alternative<Granted>(drive_.run(server_.acquire(share, drive_.soon()))));
  request.only_if = std::nullopt;
  expect_elsewhere(partial(break_call(request), {key::readers, key::released}));
  EXPECT_TRUE(std::holds_alternative<Broken>(
      break_vote(partial(break_call(request), {key::readers, key::shares, key::released}))));
  EXPECT_FALSE(exists(helper_.shares()));
}

TEST_F(ScriptsAloneTest, ALockWithoutItsRecordIsNotShownAsForeign) {
  acquired(token());
  const auto vote =
      inspect_vote(partial(inspect_call(resource_, std::nullopt, RunsTold::none), {}));
  EXPECT_TRUE(std::holds_alternative<Taken>(vote)) << vote.index();
}

TEST_F(ScriptsAloneTest, NoWaiterIsQueuedAgainAndNoRunIsRecorded) {
  ReleaseRequest request = release_of_run(acquired(token()));
  request.requeue = Requeue{{"me", 1, false, 30s}, {}, some_owner()};
  const auto vote = release_vote(alone(release_call(request)));
  ASSERT_TRUE(std::holds_alternative<Released>(vote));
  EXPECT_FALSE(std::get<Released>(vote).recorded);
  for (const std::string& key : {helper_.queue(), helper_.last()}) EXPECT_FALSE(exists(key)) << key;
}

}  // namespace
}  // namespace redlock::redis
