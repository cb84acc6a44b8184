#include "engine/diagnosis.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

using namespace std::chrono_literals;

/// A server with nothing amiss, with an identity of its own.
Diagnosis good(char id) {
  Diagnosis diagnosis;
  diagnosis.votes = true;
  diagnosis.latency = 1ms;
  diagnosis.clock_offset = 0s;
  diagnosis.identity = std::string("run ") + id;
  diagnosis.lineage = std::string("replication ") + id;
  return diagnosis;
}

SetDiagnosis judge_all(std::vector<Diagnosis> servers) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < servers.size(); ++i)
    names.emplace_back(1, static_cast<char>('a' + i));
  return judge(std::move(names), std::move(servers), 1s);
}

/// What is said of a lone server by the probe; empty when that is good.
std::string said(const Diagnosis& server, std::string_view probe, Level level) {
  const SetDiagnosis set = judge_all({server});
  for (const Finding& finding : set.servers[0].findings) {
    if (finding.probe != probe || finding.level == Level::good) continue;
    EXPECT_EQ(finding.level, level) << finding.text;
    return finding.text;
  }
  return "";
}

TEST(DiagnosisTest, CountsTheVotes) {
  Diagnosis away;
  away.reachable = false;
  away.findings.push_back({Level::bad, "reach", "no answer"});
  const SetDiagnosis set = judge_all({good('1'), away, good('3')});
  EXPECT_EQ(set.voting, 2U);
  EXPECT_EQ(set.needed, 2U);
  EXPECT_TRUE(set.has_quorum());
  EXPECT_EQ(set.worst, Level::bad);
  EXPECT_FALSE(judge_all({away, away, good('3')}).has_quorum());
}

TEST(DiagnosisTest, DoesNotWarnOfUnknownFacts) {
  Diagnosis silent;
  silent.votes = true;
  silent.findings.push_back({Level::unknown, "role", "it does not tell"});
  const SetDiagnosis set = judge_all({silent, silent});
  EXPECT_EQ(set.voting, 2U);
  EXPECT_EQ(set.worst, Level::good);
}

TEST(DiagnosisTest, GivesTwinsAndReplicasOneVote) {
  Diagnosis twin = good('2');
  twin.identity = good('1').identity;
  Diagnosis relative = good('3');
  relative.lineage = good('1').lineage;
  const SetDiagnosis set = judge_all({good('1'), twin, relative});
  EXPECT_TRUE(set.servers[0].votes);
  EXPECT_FALSE(set.servers[1].votes);
  EXPECT_FALSE(set.servers[2].votes);
  EXPECT_EQ(set.servers[1].findings.back().text,
            "it is the same server as a, which has only one vote");
  EXPECT_EQ(set.worst, Level::bad);
  EXPECT_EQ(set.voting, 1U);
}

TEST(DiagnosisTest, AllowsAClockNoMoreThanASecondAndTheTimeOfTheAnswer) {
  Diagnosis late = good('1');
  late.clock_offset = -1001ms;
  EXPECT_EQ(said(late, "clock", Level::warning), "");
  late.clock_offset = -1002ms;
  EXPECT_EQ(said(late, "clock", Level::warning), "its clock is 1s behind ours");
  late.clock_offset = 5s;
  EXPECT_EQ(said(late, "clock", Level::warning), "its clock is 5s ahead of ours");
}

TEST(DiagnosisTest, WarnsOfASlowServer) {
  Diagnosis slow = good('1');
  slow.latency = 251ms;
  EXPECT_NE(said(slow, "latency", Level::warning), "");
  slow.latency = 250ms;
  EXPECT_EQ(said(slow, "latency", Level::warning), "");
}

}  // namespace
}  // namespace redlock
