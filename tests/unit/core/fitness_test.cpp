#include "core/fitness.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace redlock {
namespace {

using namespace std::chrono_literals;

constexpr FitnessDemands one_second{1s, 0s};
constexpr FitnessDemands guarded{1s, 60s};

/// A server with nothing amiss, with an identity of its own.
Checkup good(char id) {
  Checkup checkup;
  ServerReport& report = checkup.report;
  report.latency = 1ms;
  report.clock_offset = 0s;
  report.software = "redis";
  report.version = "7.0.15";
  report.role = "master";
  report.replication_id = std::string("replication ") + id;
  report.facts = {std::string("run ") + id, 1h};
  report.append_only = true;
  report.append_fsync = "always";
  report.save = "";
  report.saves_well = true;
  report.eviction_policy = "noeviction";
  report.max_memory = 0;
  return checkup;
}

Fitness judge_all(const std::vector<Checkup>& checkups, const FitnessDemands& demands = one_second) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < checkups.size(); ++i) names.push_back(std::string(1, static_cast<char>('a' + i)));
  return judge(names, checkups, demands);
}

/// What is said about the check of a lone server; empty when it is good.
std::string said(const Checkup& checkup, std::string_view check, Grade grade, const FitnessDemands& demands = one_second) {
  const Fitness fitness = judge_all({checkup}, demands);
  for (const Finding& finding : fitness.servers[0].findings) {
    if (finding.check == check && finding.grade != Grade::good) {
      EXPECT_EQ(finding.grade, grade) << finding.text;
      return finding.text;
    }
  }
  return "";
}

TEST(Fitness, IsFineWhenNothingIsAmiss) {
  const Fitness fitness = judge_all({good('1'), good('2'), good('3')}, guarded);
  EXPECT_EQ(fitness.voting, 3U);
  EXPECT_EQ(fitness.needed, 2U);
  EXPECT_EQ(fitness.worst, Grade::good);
  for (const ServerFitness& server : fitness.servers) {
    EXPECT_TRUE(std::ranges::all_of(server.findings, [](const Finding& finding) { return finding.grade == Grade::good; }));
  }
}

TEST(Fitness, DoesNotWarnOfWhatIsNotKnown) {
  Checkup silent;
  const Fitness fitness = judge_all({silent});
  EXPECT_EQ(fitness.voting, 1U);
  EXPECT_EQ(fitness.worst, Grade::good);
  EXPECT_GE(std::ranges::count_if(fitness.servers[0].findings, [](const Finding& finding) { return finding.grade == Grade::unknown; }), 5);
}

TEST(Fitness, GivesNoVoteToOneThatCannotBeLocked) {
  Checkup away = good('1');
  away.fault = Fault{FaultKind::silent, "no answer"};
  Checkup denied = good('2');
  denied.lock_step = "take a lock";
  denied.lock_fault = Fault{FaultKind::denied, "no"};
  denied.missing_rights = {"hset", "zadd"};
  const Fitness fitness = judge_all({away, denied, good('3')});
  EXPECT_EQ(fitness.voting, 1U);
  EXPECT_FALSE(fitness.has_quorum());
  EXPECT_EQ(said(away, "reach", Grade::bad), "no answer");
  EXPECT_EQ(said(denied, "rights", Grade::bad), "cannot take a lock: no; missing rights: +hset +zadd");
}

TEST(Fitness, GivesTwinsAndReplicasOneVote) {
  Checkup twin = good('2');
  twin.report.facts.run_id = good('1').report.facts.run_id;
  Checkup relative = good('3');
  relative.report.replication_id = good('1').report.replication_id;
  const Fitness fitness = judge_all({good('1'), twin, relative});
  EXPECT_TRUE(fitness.servers[0].votes);
  EXPECT_FALSE(fitness.servers[1].votes);
  EXPECT_FALSE(fitness.servers[2].votes);
  EXPECT_EQ(fitness.worst, Grade::bad);
}

TEST(Fitness, GivesNoVoteToAReplica) {
  Checkup replica = good('1');
  replica.report.role = "slave";
  replica.report.master = "10.0.0.1:6379";
  EXPECT_EQ(said(replica, "role", Grade::bad), "it is a replica of 10.0.0.1:6379: name the master instead");
  EXPECT_EQ(judge_all({replica}).voting, 0U);
}

TEST(Fitness, HeedsTheRestartGuard) {
  Checkup young = good('1');
  young.report.facts.up = 21s;
  EXPECT_EQ(said(young, "uptime", Grade::warning, guarded), "it started 21s ago, its vote counts in 40s (--restart-guard)");
  EXPECT_EQ(judge_all({young}, guarded).voting, 0U);
  EXPECT_EQ(said(young, "uptime", Grade::warning), "");
  EXPECT_EQ(judge_all({young}).voting, 1U);
  Checkup untold = good('1');
  untold.report.facts.up.reset();
  EXPECT_NE(said(untold, "uptime", Grade::bad, guarded), "");
  EXPECT_EQ(judge_all({untold}, guarded).voting, 0U);
  EXPECT_NE(said(untold, "uptime", Grade::unknown), "");
}

TEST(Fitness, WantsEveryWriteOnDiskUnlessTheGuardCoversIt) {
  for (const char* fsync : {"everysec", "no"}) {
    Checkup now_and_then = good('1');
    now_and_then.report.append_fsync = fsync;
    EXPECT_NE(said(now_and_then, "persistence", Grade::warning), "");
    EXPECT_EQ(said(now_and_then, "persistence", Grade::warning, guarded), "");
  }
  Checkup nothing = good('1');
  nothing.report.append_only = false;
  EXPECT_NE(said(nothing, "persistence", Grade::warning).find("keeps nothing"), std::string::npos);
  nothing.report.save = "3600 1";
  EXPECT_NE(said(nothing, "persistence", Grade::warning).find("now and then"), std::string::npos);
  EXPECT_EQ(said(nothing, "persistence", Grade::warning, guarded), "");
  Checkup failing = good('1');
  failing.report.saves_well = false;
  EXPECT_NE(said(failing, "persistence", Grade::warning, guarded), "");
  Checkup untold = good('1');
  untold.report.append_fsync.clear();
  EXPECT_NE(said(untold, "persistence", Grade::unknown), "");
}

TEST(Fitness, WarnsOfEvictionAlsoWithoutALimit) {
  Checkup evicts = good('1');
  evicts.report.eviction_policy = "allkeys-lru";
  EXPECT_EQ(said(evicts, "eviction", Grade::warning),
            "it evicts locks once it has a maxmemory (allkeys-lru): set maxmemory-policy noeviction");
  evicts.report.max_memory = 1000;
  EXPECT_EQ(said(evicts, "eviction", Grade::warning),
            "it evicts locks when its memory is full (allkeys-lru): set maxmemory-policy noeviction");
}

TEST(Fitness, AllowsAClockNoMoreThanASecondAndTheTimeOfTheAnswer) {
  Checkup late = good('1');
  late.report.clock_offset = -1001ms;
  EXPECT_EQ(said(late, "clock", Grade::warning), "");
  late.report.clock_offset = -1002ms;
  EXPECT_EQ(said(late, "clock", Grade::warning), "its clock is 1s behind ours");
  late.report.clock_offset = 5s;
  EXPECT_EQ(said(late, "clock", Grade::warning), "its clock is 5s ahead of ours");
}

TEST(Fitness, WarnsOfASlowServerAndOfAnOldOne) {
  Checkup slow = good('1');
  slow.report.latency = 251ms;
  EXPECT_NE(said(slow, "latency", Grade::warning), "");
  slow.report.latency = 250ms;
  EXPECT_EQ(said(slow, "latency", Grade::warning), "");
  Checkup old = good('1');
  old.report.version = "4.0.14";
  EXPECT_EQ(said(old, "software", Grade::bad), "it is version 4.0.14, and 5 is needed");
  old.report.version = "\x1b[31m";
  EXPECT_NE(said(old, "software", Grade::unknown), "");
}

TEST(Fitness, ShowsNothingUnescaped) {
  Checkup hostile = good('1');
  for (std::string* text : {&hostile.report.eviction_policy, &hostile.report.role, &hostile.report.master}) *text = "\x1b[31m";
  hostile.report.version = "4\x1b";
  const Fitness fitness = judge_all({hostile, hostile});
  for (const Finding& finding : fitness.servers[1].findings) {
    EXPECT_EQ(finding.text.find('\x1b'), std::string::npos) << finding.check;
  }
}

TEST(Fitness, CountsTheReplicasThatMustConfirm) {
  FitnessDemands two = one_second;
  two.replicas = 2;
  Checkup checkup = good('1');
  EXPECT_NE(said(checkup, "replicas", Grade::unknown, two), "");
  checkup.report.replicas = 2;
  EXPECT_EQ(said(checkup, "replicas", Grade::good, two), "");
  EXPECT_EQ(judge_all({checkup}, two).voting, 1U);
  checkup.report.replicas = 1;
  EXPECT_NE(said(checkup, "replicas", Grade::bad, two).find("1 of its replicas"), std::string::npos);
  EXPECT_EQ(judge_all({checkup}, two).voting, 0U);
  EXPECT_EQ(said(checkup, "replicas", Grade::good), "");  // nobody asked for any
}

TEST(Fitness, WarnsOfFailOversThatNobodyConfirmsFor) {
  Checkup checkup = good('1');
  checkup.report.fails_over = true;
  checkup.report.replicas = 1;
  EXPECT_NE(said(checkup, "replicas", Grade::warning), "");
  FitnessDemands one = one_second;
  one.replicas = 1;
  EXPECT_EQ(said(checkup, "replicas", Grade::good, one), "");
}

TEST(Fitness, WantsNoReplicasWhereThereAreNone) {
  Checkup checkup = good('1');
  checkup.report.fails_over = true;
  checkup.report.replicas = 0;
  EXPECT_EQ(said(checkup, "replicas", Grade::warning), "");
  checkup.report.replicas.reset();  // it does not tell
  EXPECT_NE(said(checkup, "replicas", Grade::warning), "");
}

}  // namespace
}  // namespace redlock
