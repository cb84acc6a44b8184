#include <gtest/gtest.h>

#include "output/event_json.hpp"

namespace redlock::output {
namespace {

using namespace std::chrono_literals;

const std::vector<Resource> one{Resource::from("deploy").value()};
const std::vector<Lease> no_leases;
constexpr Milliseconds event_time{1'700'000'000'007};

std::string json_of(const event::Any& event, std::size_t dropped = 0) {
  return event_json(event, {one, no_leases, event_time, dropped});
}

TEST(EventJson, NamesTheEventTheTimeAndTheKey) {
  EXPECT_EQ(json_of(event::Renewed{/*after_trouble=*/true}),
            R"({"event":"renewed_again","at":"2023-11-14T22:13:20.007Z","key":"deploy"})");
}

TEST(EventJson, ReportsHowManyEventsWereDroppedBefore) {
  EXPECT_NE(json_of(event::Renewed{/*after_trouble=*/true}, 3).find(R"("dropped":3)"),
            std::string::npos);
}

TEST(EventJson, IsEmptyForEventsThatAreOnlyMessages) {
  EXPECT_EQ(json_of(event::StillWaiting{}), "");
  EXPECT_EQ(json_of(event::Renewed{/*after_trouble=*/false}), "");
}

TEST(EventJson, LeavesOutThePositionOutsideTheQueue) {
  event::Waiting waiting{one.front(),  {}, 1, 1500ms, /*priority=*/0, /*replaces=*/false,
                         /*news=*/true};
  EXPECT_EQ(json_of(waiting).find("position"), std::string::npos);
  EXPECT_NE(json_of(waiting).find(R"("waited_ms":1500)"), std::string::npos);
  waiting.failure.queue.queued = true;
  waiting.failure.queue.ahead = 1;
  EXPECT_NE(json_of(waiting).find(R"("position":2)"), std::string::npos);
  EXPECT_EQ(json_of(waiting).find("priority"), std::string::npos);
  waiting.priority = 5;
  EXPECT_NE(json_of(waiting).find(R"("priority":5)"), std::string::npos);
  waiting.news = false;
  EXPECT_EQ(json_of(waiting), "");
}

TEST(EventJson, ReportsWhyTheCommandIsStopped) {
  EXPECT_NE(json_of(event::Stopping{StopReason::max_hold, 1s}).find(R"("why":"max_hold")"),
            std::string::npos);
  EXPECT_NE(json_of(event::Stopping{StopReason::lease, std::nullopt}).find(R"("why":"lost")"),
            std::string::npos);
  const event::Stopping asked{StopReason::request, std::nullopt,
                              StopRequest{"web1", "alice", "wrong branch"}};
  EXPECT_NE(json_of(asked).find(R"("why":"request","by":"alice@web1","reason":"wrong branch")"),
            std::string::npos);
}

TEST(EventJson, ReportsForWhomARunningCommandIsReplaced) {
  const event::Stopping replaced{StopReason::replaced, std::nullopt,
                                 StopRequest{"web1", "alice", "commit 2", Place{7, "a"}}};
  EXPECT_NE(json_of(replaced).find(R"("why":"replaced","by":"alice@web1","reason":"commit 2")"),
            std::string::npos);
}

TEST(EventJson, ReportsForWhomAWaiterWasSuperseded) {
  Owner newer;
  newer.note = "commit 2";
  EXPECT_EQ(
      json_of(event::Superseded{one.front(), newer, 1500ms}),
      R"({"event":"superseded","at":"2023-11-14T22:13:20.007Z","key":"deploy","waited_ms":1500,)"
      R"("superseded_by":{"host":"","user":"","pid":0,"program":"","note":"commit 2"}})");
  EXPECT_EQ(json_of(event::Superseded{one.front(), std::nullopt, 1500ms}).find("superseded_by"),
            std::string::npos);
}

TEST(EventJson, ReportsWhyThereIsNoLock) {
  const Outcome outcome = outcome_of("run", one, CommandResult::unavailable, "no quorum");
  const std::string json = json_of(event::NotAcquired{outcome, 1500ms});
  EXPECT_NE(json.find(R"("event":"not_acquired")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("key":"deploy","waited_ms":1500,"result":"unavailable","exit_code":69,)"
                      R"("message":"no quorum"})"),
            std::string::npos)
      << json;
}

TEST(EventJson, EscapesTerminalControlCharacters) {
  Owner newer;
  newer.note = "\u009b2J \u202e \x7f";  // CSI, from right to left, delete
  const std::string json = json_of(event::Superseded{one.front(), newer, 1500ms});
  EXPECT_NE(json.find(R"("note":"\u009b2J \u202e \u007f")"), std::string::npos) << json;
}

TEST(EventJson, ReportsTheRunThatMakesThisOneUnnecessary) {
  PastRun last;
  last.fence = Fence(7);
  last.started = 1h;
  const std::string json = json_of(event::Fresh{last, 20ms});
  EXPECT_NE(
      json.find(R"("key":"deploy","waited_ms":20,"last":{"fence":7,"started_ago_ms":3600000)"),
      std::string::npos)
      << json;
}

TEST(EventJson, ShowsAKeyThatIsNotUtf8AlsoAsBase64) {
  const std::vector<Resource> odd{Resource::from("a\xff").value()};
  const std::string json =
      event_json(event::Lost{std::nullopt, "gone"}, {odd, no_leases, event_time, 0});
  EXPECT_NE(json.find(R"("key_base64":"Yf8")"), std::string::npos) << json;
}

TEST(EventJson, NamesAllKeysOrTheOneConcerned) {
  const std::vector<Resource> two{Resource::from("a").value(), Resource::from("b").value()};
  const EventContext context{two, no_leases, event_time, 0};
  EXPECT_NE(event_json(event::Renewed{/*after_trouble=*/true}, context)
                .find(R"("keys":[{"key":"a"},{"key":"b"}])"),
            std::string::npos);
  EXPECT_NE(event_json(event::Lost{two[1], "gone"}, context).find(R"("key":"b")"),
            std::string::npos);
}

}  // namespace
}  // namespace redlock::output
