#include "output/wait_report.hpp"

#include <gtest/gtest.h>

namespace redlock::output {
namespace {

using namespace std::chrono_literals;
using Why = AcquireDecision;

const Resource demo = Resource::from("demo").value();
const Instant began{100s};
constexpr std::size_t wide = 500;

AttemptFailure held_by(const std::string& user, Duration age = 10s) {
  AttemptFailure failure{};
  failure.why = Why::busy;
  failure.holder.emplace();
  failure.holder->id = LeaseId{user};
  failure.holder->age = age;
  failure.holder->remaining = 20s;
  failure.holder->owner = Owner{"host", user, "job", "", 7, /*supervised=*/true, 30s};
  failure.queue.queued = true;
  failure.queue.ahead = 1;
  return failure;
}

AttemptFailure without_holder(Why why, std::size_t ahead = 0) {
  AttemptFailure failure{};
  failure.why = why;
  failure.queue.queued = true;
  failure.queue.ahead = ahead;
  return failure;
}

class WaitReportTest : public ::testing::Test {
 protected:
  WaitReport report_{began, 1};

  /// The output of a wait that is not on a terminal, polled every second; `failure_at` returns the
  /// result of the last attempt.
  std::vector<std::string> lines(
      int seconds, const std::function<std::optional<AttemptFailure>(int)>& failure_at) {
    std::vector<std::string> all;
    for (int i = 0; i <= seconds; ++i) {
      if (const auto failure = failure_at(i))
        report_.learn(demo, *failure, began + std::chrono::seconds(i));
      if (auto line = report_.news(began + std::chrono::seconds(i)))
        all.push_back(std::move(*line));
    }
    return all;
  }
};

TEST_F(WaitReportTest, ReportsNothingInTheFirstSecond) {
  EXPECT_EQ(report_.line(began + 5s, wide), "");
  report_.learn(demo, held_by("a"), began);
  EXPECT_EQ(report_.line(began + 999ms, wide), "");
  EXPECT_EQ(report_.news(began + 999ms), std::nullopt);
  EXPECT_NE(report_.line(began + 1s, wide), "");
  EXPECT_NE(report_.news(began + 1s), std::nullopt);
}

TEST_F(WaitReportTest, ExtrapolatesFromTheLastAttemptAndARenewalUntilItIsDue) {
  AttemptFailure failure = held_by("a");
  failure.holder->remaining = 28s;
  report_.learn(demo, failure, began);
  EXPECT_EQ(report_.line(began + 1s, wide),
            "waiting for demo (1s, 2nd in queue): held by a@host (run pid 7: job), for 11s, last "
            "renewed 3s ago");
  EXPECT_EQ(report_.line(began + 14s, wide),
            "waiting for demo (14s, 2nd in queue): held by a@host (run pid 7: job), for 24s, last "
            "renewed 10s ago");
}

TEST_F(WaitReportTest, ShowsUserAndPidInFewColumnsBeforeAllElse) {
  AttemptFailure failure = held_by("alice");
  failure.holder->owner->note = "release 4.2 of the web shop";
  failure.holder->owner->host = "runner-3-project-42";
  report_.learn(Resource::from("deploy:production").value(), failure, began);
  const auto line = [&](std::size_t width) { return report_.line(began + 1s, width); };
  const std::string end = ", for 11s, last renewed 10s ago";
  const std::string begin = "waiting for deploy:production (1s, 2nd in queue): held by ";
  EXPECT_EQ(line(122),
            begin + "alice@runner-3-project-42 (run pid 7: job), \"release 4.2 of ...\"");
  EXPECT_EQ(line(108), begin + "alice@runner-3-project-42 (run pid 7: job)" + end);
  EXPECT_EQ(line(97), begin + "alice@runner-3-project-42 (run pid 7)");
  EXPECT_EQ(line(90), begin + "alice@runner-3-pr... (run pid 7)");
  EXPECT_EQ(line(79),
            "waiting for deploy:pr... (1s, 2nd in queue): held by alice@runne... (run pid 7)");
}

TEST_F(WaitReportTest, CountsDownALeaseThatIsNotRenewed) {
  AttemptFailure failure = held_by("a");
  failure.holder->owner->supervised = false;
  failure.holder->owner->renewed_for = Duration::zero();
  report_.learn(demo, failure, began);
  EXPECT_EQ(
      report_.line(began + 5s, wide),
      "waiting for demo (5s, 2nd in queue): held by a@host (pid 7: job), for 15s, expires in 15s");
  EXPECT_EQ(
      report_.line(began + 25s, wide),
      "waiting for demo (25s, 2nd in queue): held by a@host (pid 7: job), for 35s, expires in 0s");
}

TEST_F(WaitReportTest, DoesNotNameThePreviousHolderWhenNoneHoldsTheLock) {
  report_.learn(demo, held_by("a"), began);
  for (const Why why : {Why::busy, Why::split, Why::maybe_busy}) {
    report_.learn(demo, without_holder(why), began + 2s);
    EXPECT_EQ(report_.line(began + 3s, wide),
              "waiting for demo (3s, 1st in queue): being handed to the next waiter");
    EXPECT_EQ(report_.news(began + 3s), std::nullopt);
  }
}

TEST_F(WaitReportTest, ReportsAHolderOnceAMinute) {
  const auto told = lines(125, [](int) { return held_by("a"); });
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0],
            "waiting for demo: held by a@host (run pid 7: job), for 10s, last renewed 10s ago; you "
            "are 2nd in queue after 1s");
}

TEST_F(WaitReportTest, ShortGapsWithoutAHolderAreNoNews) {
  const auto told = lines(55, [](int i) {
    return i % 3 == 2 ? without_holder(i % 2 == 0 ? Why::busy : Why::maybe_busy) : held_by("a");
  });
  EXPECT_EQ(told.size(), 1U);
}

TEST_F(WaitReportTest, ReportsANewHolderAfterASecond) {
  const auto told = lines(20, [](int i) { return held_by(i < 10 ? "a" : "b"); });
  ASSERT_EQ(told.size(), 2U);
  EXPECT_NE(told[1].find("held by b@host"), std::string::npos);
}

TEST_F(WaitReportTest, DoesNotReportMomentaryHolders) {
  EXPECT_TRUE(lines(50, [](int i) { return held_by("user" + std::to_string(i)); }).empty());
}

TEST_F(WaitReportTest, ReportsAnOutageAndTheHolderAgainOnlyAfterAMinute) {
  const auto told = lines(
      58, [](int i) { return i / 5 % 2 == 1 ? without_holder(Why::unavailable) : held_by("a"); });
  ASSERT_EQ(told.size(), 2U);
  EXPECT_NE(told[1].find("no quorum"), std::string::npos);
}

TEST_F(WaitReportTest, WhatTheLineShowsInFullIsNoNews) {
  report_.learn(demo, held_by("a"), began);
  EXPECT_EQ(report_.news_beside_line(began + 1s, wide), std::nullopt);
  EXPECT_EQ(report_.news(began + 30s), std::nullopt);
}

TEST_F(WaitReportTest, WhatALineCannotShowInFullIsReportedOnceBesideIt) {
  report_.learn(demo, held_by("a"), began);
  EXPECT_EQ(report_.news_beside_line(began + 999ms, 79), std::nullopt);
  EXPECT_EQ(report_.news_beside_line(began + 1s, 79),
            "waiting for demo: held by a@host (run pid 7: job), for 11s, last renewed 10s ago; you "
            "are 2nd in queue after 1s");
  for (int i = 2; i < 200; ++i)
    EXPECT_EQ(report_.news_beside_line(began + std::chrono::seconds(i), 79), std::nullopt);
  report_.learn(demo, held_by("b"), began + 200s);
  EXPECT_NE(report_.news_beside_line(began + 201s, 79), std::nullopt);
}

TEST_F(WaitReportTest, SaysThatReplaceCannotStopThisHolder) {
  const auto told = [](const AttemptFailure& failure) {
    WaitReport report(began, 1, /*priority=*/0, /*replaces=*/true);
    report.learn(demo, failure, began);
    return report.line(began + 1s, wide).find("it runs without --replace, so it is not stopped") !=
           std::string::npos;
  };
  AttemptFailure failure = held_by("a");
  EXPECT_TRUE(told(failure));
  failure.holder->owner->place = Place{};
  EXPECT_FALSE(told(failure));
  failure.holder->owner->place.reset();
  failure.holder->owner->supervised = false;
  EXPECT_FALSE(told(failure));
}

TEST_F(WaitReportTest, UsesEnglishOrdinals) {
  const std::vector<std::pair<std::size_t, std::string>> expected{
      {1, "1st"},   {2, "2nd"},   {3, "3rd"},   {4, "4th"},     {11, "11th"},
      {12, "12th"}, {13, "13th"}, {21, "21st"}, {102, "102nd"}, {111, "111th"}};
  for (const auto& [number, text] : expected) {
    report_.learn(demo, without_holder(Why::busy, number - 1), began);
    EXPECT_NE(report_.line(began + 1s, wide).find(", " + text + " in queue)"), std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace redlock::output
