#include "store/redis/findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace redlock::redis {
namespace {

using namespace std::chrono_literals;

const Finding can_be_locked{Level::good, "rights", ""};
constexpr Demands no_demands;
constexpr Demands guarded{60s, 0};

/// A server with nothing amiss.
ServerReport good() {
  ServerReport report;
  report.latency = 1ms;
  report.clock_offset = 0s;
  report.software = "redis";
  report.version = "7.0.15";
  report.role = "master";
  report.replication_id = "replication 1";
  report.facts = {"run 1", 1h};
  report.append_only = true;
  report.append_fsync = "always";
  report.save = "";
  report.saves_well = true;
  report.eviction_policy = "noeviction";
  report.max_memory = 0;
  return report;
}

Diagnosis diagnosis(const ServerReport& report, const Demands& demands = no_demands) {
  return diagnosis_of(report, can_be_locked, demands);
}

bool votes(const ServerReport& report, const Demands& demands = no_demands) {
  return diagnosis(report, demands).votes;
}

/// What the probe says, advice and all; empty when that is good.
std::string said(const ServerReport& report, std::string_view probe, Level level,
                 const Demands& demands = no_demands) {
  for (const Finding& finding : diagnosis(report, demands).findings) {
    if (finding.probe != probe || finding.level == Level::good) continue;
    EXPECT_EQ(finding.level, level) << finding.text;
    return finding.text + (finding.advice.empty() ? "" : ": " + finding.advice);
  }
  return "";
}

TEST(Findings, ReportTheEffectOfReplicasClocksOnLocks) {
  ServerReport report = good();
  report.replica_clocks = {{"10.0.0.2:6379", 300ms}};
  EXPECT_EQ(said(report, "replica-clock", Level::warning), "");
  report.replica_clocks.push_back({"10.0.0.3:6379", 60s});
  EXPECT_NE(said(report, "replica-clock", Level::warning).find("10.0.0.3:6379 is 1m ahead"),
            std::string::npos);
  report.replica_clocks.back().ahead = -60s;
  EXPECT_NE(said(report, "replica-clock", Level::warning).find("10.0.0.3:6379 is 1m behind"),
            std::string::npos);
  report.replica_clocks.back() = {"10.0.0.3:6379", std::nullopt, "no connection within 1s"};
  EXPECT_EQ(said(report, "replica-clock", Level::unknown),
            "the clock of its replica 10.0.0.3:6379 is not known: no connection within 1s");
}

TEST(Findings, TakeTheVoteOfAnAddressThatLeadsToSeveralServers) {
  ServerReport report = good();
  report.servers_behind = 2;
  EXPECT_FALSE(votes(report));
  EXPECT_NE(said(report, "address", Level::bad).find("2 different servers"), std::string::npos);
}

TEST(Findings, AreGoodWhenNothingIsAmiss) {
  const Diagnosis found = diagnosis(good(), guarded);
  EXPECT_TRUE(found.reachable);
  EXPECT_TRUE(found.votes);
  EXPECT_EQ(found.identity, "run 1");
  EXPECT_EQ(found.lineage, "replication 1");
  EXPECT_TRUE(std::ranges::all_of(
      found.findings, [](const Finding& finding) { return finding.level == Level::good; }));
}

TEST(Findings, AreNoWarningsOfWhatIsNotKnown) {
  const Diagnosis found = diagnosis(ServerReport());
  EXPECT_TRUE(found.votes);
  EXPECT_GE(std::ranges::count(found.findings, Level::unknown, &Finding::level), 6);
  EXPECT_EQ(std::ranges::count(found.findings, Level::warning, &Finding::level), 0);
}

TEST(Findings, GiveNoVoteToOneThatCannotBeLocked) {
  const Diagnosis found = diagnosis_of(good(), {Level::bad, "rights", "no"}, no_demands);
  EXPECT_FALSE(found.votes);
  EXPECT_EQ(found.findings.front().text, "no");
}

TEST(Findings, WarnOfAServerThatEveryHostMayUse) {
  ServerReport report = good();
  EXPECT_EQ(said(report, "login", Level::warning), "");
  report.unprotected = true;
  EXPECT_EQ(said(report, "login", Level::warning),
            "it requires no password, so every host that can reach it can take and break locks: "
            "set a password (requirepass) or an ACL user");
  EXPECT_TRUE(votes(report));
  const auto refused = diagnosis_of(report, {Level::bad, "rights", "no"}, no_demands).findings;
  EXPECT_EQ(std::ranges::count(refused, "login", &Finding::probe), 0);
}

TEST(Findings, AreOneOfAServerThatIsAway) {
  const Diagnosis found = unreachable(Fault{FaultKind::silent, "no answer"});
  EXPECT_FALSE(found.reachable);
  EXPECT_FALSE(found.votes);
  ASSERT_EQ(found.findings.size(), 1U);
  EXPECT_EQ(found.findings.front().text, "no answer");
  // It has the same columns and facts as the others.
  const Diagnosis other = diagnosis(good());
  EXPECT_TRUE(std::ranges::equal(found.facts, other.facts, {}, &Fact::name, &Fact::name));
  EXPECT_TRUE(std::ranges::equal(found.cells, other.cells, {}, &Cell::heading, &Cell::heading));
  for (const Fact& fact : found.facts)
    EXPECT_TRUE(std::holds_alternative<std::monostate>(fact.value)) << fact.name;
}

TEST(Findings, NameOthersThanRedisByTheirOwnVersion) {
  const ServerReport report =
      report_from("# Server\r\nversion:2.9.0\r\nkvrocks_version:2.9.0\r\nredis_version:4.0.0\r\n");
  EXPECT_EQ(report.software, "kvrocks");
  EXPECT_EQ(report.version, "2.9.0");
  EXPECT_EQ(report_from("redis_version:7.0.15\r\n").software, "redis");
}

TEST(Findings, GiveNoVoteToAReplica) {
  ServerReport replica = good();
  replica.role = "slave";
  replica.master = "10.0.0.1:6379";
  EXPECT_EQ(said(replica, "role", Level::bad),
            "it is a replica of 10.0.0.1:6379: name the master instead");
  EXPECT_FALSE(votes(replica));
}

TEST(Findings, HeedTheRestartGuard) {
  ServerReport restarted = good();
  restarted.facts.up = 21s;
  EXPECT_EQ(said(restarted, "uptime", Level::warning, guarded),
            "it started 21s ago, its vote counts in 40s (--restart-guard)");
  EXPECT_FALSE(votes(restarted, guarded));
  EXPECT_EQ(said(restarted, "uptime", Level::warning), "");
  EXPECT_TRUE(votes(restarted));
  restarted.facts.up = -59min;
  EXPECT_EQ(said(restarted, "uptime", Level::warning, guarded),
            "its clock was set back to before its start, its vote counts in 1h (--restart-guard)");
  ServerReport untold = good();
  untold.facts.up.reset();
  EXPECT_NE(said(untold, "uptime", Level::bad, guarded), "");
  EXPECT_FALSE(votes(untold, guarded));
  EXPECT_NE(said(untold, "uptime", Level::unknown), "");
}

TEST(Findings, RequireEveryWriteOnDiskUnlessTheGuardCoversIt) {
  for (const char* fsync : {"everysec", "no"}) {
    ServerReport now_and_then = good();
    now_and_then.append_fsync = fsync;
    EXPECT_NE(said(now_and_then, "persistence", Level::warning), "");
    EXPECT_EQ(said(now_and_then, "persistence", Level::warning, guarded), "");
  }
  ServerReport nothing = good();
  nothing.append_only = false;
  EXPECT_NE(said(nothing, "persistence", Level::warning).find("persists nothing"),
            std::string::npos);
  nothing.save = "3600 1";
  EXPECT_NE(said(nothing, "persistence", Level::warning).find("snapshots only"), std::string::npos);
  EXPECT_EQ(said(nothing, "persistence", Level::warning, guarded), "");
  ServerReport failing = good();
  failing.saves_well = false;
  EXPECT_NE(said(failing, "persistence", Level::warning, guarded), "");
  ServerReport untold = good();
  untold.append_fsync.clear();
  EXPECT_NE(said(untold, "persistence", Level::unknown), "");
}

TEST(Findings, WarnOfEvictionAlsoWithoutALimit) {
  ServerReport evicts = good();
  evicts.eviction_policy = "allkeys-lru";
  EXPECT_EQ(
      said(evicts, "eviction", Level::warning),
      "it evicts locks once it has a maxmemory (allkeys-lru): set maxmemory-policy noeviction");
  evicts.max_memory = 1000;
  EXPECT_EQ(
      said(evicts, "eviction", Level::warning),
      "it evicts locks when its memory is full (allkeys-lru): set maxmemory-policy noeviction");
}

TEST(Findings, RequireAVersionThatHasAllTheScriptsNeed) {
  ServerReport old = good();
  old.version = "4.0.14";
  EXPECT_EQ(said(old, "software", Level::warning), "it is version 4.0.14, and 5 is needed");
  const Finding refused{Level::bad, "rights", "no"};
  const auto findings = diagnosis_of(old, refused, no_demands).findings;
  EXPECT_EQ(std::ranges::find(findings, "software", &Finding::probe)->level, Level::bad);
  old.software = "kvrocks";
  old.version = "2.9.0";
  EXPECT_EQ(said(old, "software", Level::warning), "");
  old.version = "\x1b[31m";
  EXPECT_NE(said(old, "software", Level::unknown), "");
}

TEST(Findings, ShowNothingUnescaped) {
  ServerReport hostile = good();
  for (std::string* text : {&hostile.eviction_policy, &hostile.role, &hostile.master})
    *text = "\x1b[31m";
  hostile.version = "4\x1b";
  for (const Finding& finding : diagnosis(hostile).findings) {
    EXPECT_EQ((finding.text + finding.advice).find('\x1b'), std::string::npos) << finding.probe;
  }
}

TEST(Findings, CountTheReplicasThatMustConfirm) {
  constexpr Demands two{0s, 2};
  ServerReport report = good();
  EXPECT_NE(said(report, "replicas", Level::unknown, two), "");
  report.replicas = 2;
  EXPECT_EQ(said(report, "replicas", Level::good, two), "");
  EXPECT_TRUE(votes(report, two));
  report.replicas = 1;
  EXPECT_NE(said(report, "replicas", Level::bad, two).find("1 of its replicas"), std::string::npos);
  EXPECT_FALSE(votes(report, two));
  EXPECT_EQ(said(report, "replicas", Level::good), "");  // none was asked for
}

TEST(Findings, WarnOfFailOversWithoutConfirmation) {
  ServerReport report = good();
  report.fails_over = true;
  report.replicas = 1;
  EXPECT_NE(said(report, "replicas", Level::warning), "");
  EXPECT_EQ(said(report, "replicas", Level::good, Demands{0s, 1}), "");
}

TEST(Findings, RequireNoReplicasWhereThereAreNone) {
  ServerReport report = good();
  report.fails_over = true;
  report.replicas = 0;
  EXPECT_EQ(said(report, "replicas", Level::warning), "");
  report.replicas.reset();  // it does not tell
  EXPECT_NE(said(report, "replicas", Level::warning), "");
}

TEST(Findings, SayWhyACheckIsUnknown) {
  ServerReport report = good();
  report.eviction_policy.clear();
  report.unanswered = {{"INFO memory", "no answer within 1s"}};
  EXPECT_EQ(said(report, "eviction", Level::unknown),
            "it does not report its maxmemory-policy: INFO memory: no answer within 1s");
  EXPECT_EQ(said(report, "report", Level::unknown), "");
  // Of the masters of a cluster.
  report.unanswered = {{"INFO memory", "a:1: no answer"}, {"INFO memory", "b:1: no answer"}};
  EXPECT_EQ(said(report, "eviction", Level::unknown),
            "it does not report its maxmemory-policy: INFO memory: a:1: no answer, and 1 more");
}

TEST(Findings, AdviseToAllowInfoOnlyWhereItIsRefused) {
  ServerReport report = good();
  report.facts.up.reset();
  report.unanswered = {{"INFO server", "no answer within 1s"}};
  const std::string text = "it does not report its uptime, which --restart-guard needs";
  EXPECT_EQ(said(report, "uptime", Level::bad, guarded),
            text + ": INFO server: no answer within 1s");
  report.unanswered = {{"INFO server", "NOPERM", /*refused=*/true}};
  EXPECT_EQ(said(report, "uptime", Level::bad, guarded),
            text + ": INFO server: NOPERM: allow INFO (+info)");
}

TEST(Findings, TellOfQuestionsWithoutAnAnswerThatNoCheckNeeds) {
  ServerReport report = good();
  report.unanswered = {{"CONFIG GET save", "no answer within 1s"}};
  EXPECT_EQ(said(report, "report", Level::unknown),
            "it did not answer a question about itself: CONFIG GET save: no answer within 1s");
  report.unanswered = {{"CONFIG GET save", "ERR unknown command", /*refused=*/true}};
  EXPECT_EQ(said(report, "report", Level::unknown), "");
  report.unanswered = {{"INFO memory", "NOPERM", /*refused=*/true}};
  EXPECT_NE(said(report, "report", Level::unknown), "");
}

TEST(Findings, DoNotCallAnAddressThatCouldNotBeTriedGood) {
  ServerReport report = good();
  report.unanswered = {{std::string(more_connections_question), "too many clients"}};
  EXPECT_NE(said(report, "address", Level::unknown).find("too many clients"), std::string::npos);
}

TEST(WeakerReport, IsABadOneBeforeAnUnknownOneBeforeAGoodOne) {
  ServerReport bad = good();
  bad.role = "slave";
  bad.append_only = false;
  bad.append_fsync = "no";
  bad.save = "";
  bad.saves_well = false;
  bad.eviction_policy = "allkeys-lru";
  bad.clock_offset = 60s;
  ServerReport unknown = good();
  unknown.role.clear();
  unknown.append_only.reset();
  unknown.append_fsync.clear();
  unknown.save.reset();
  unknown.saves_well.reset();
  unknown.eviction_policy.clear();
  unknown.unanswered = {{"INFO memory", "no answer"}};
  ServerReport fine = good();
  fine.save = "3600 1";
  for (const bool turned : {false, true}) {
    const ServerReport worst = turned ? weaker(unknown, bad) : weaker(bad, unknown);
    EXPECT_EQ(worst.role, "slave");
    EXPECT_EQ(worst.append_only, false);
    EXPECT_EQ(worst.append_fsync, "no");
    EXPECT_EQ(worst.save, "");
    EXPECT_EQ(worst.saves_well, false);
    EXPECT_EQ(worst.eviction_policy, "allkeys-lru");
    EXPECT_EQ(worst.clock_offset, Duration(60s));
    EXPECT_EQ(worst.unanswered.size(), 1U);
    const ServerReport middle = turned ? weaker(fine, unknown) : weaker(unknown, fine);
    EXPECT_EQ(middle.role, "");
    EXPECT_EQ(middle.append_only, std::nullopt);
    EXPECT_EQ(middle.append_fsync, "");
    EXPECT_EQ(middle.save, std::nullopt);
    EXPECT_EQ(middle.saves_well, std::nullopt);
    EXPECT_EQ(middle.eviction_policy, "");
  }
}

}  // namespace
}  // namespace redlock::redis
