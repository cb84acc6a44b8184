#include "output/status.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include "output/lock_json.hpp"
#include "output/openmetrics.hpp"
#include "support/columns.hpp"

namespace redlock::output {
namespace {

using namespace std::chrono_literals;

/// 2026-11-22 08:30:00 UTC.
constexpr Milliseconds at{1795336200000};

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

KeyStatus free_lock(const std::string& key) {
  const InspectVote vote = Free{};
  return {Resource::from(key).value(), summarize({vote}), {"redis://a:6379"}, {vote}};
}

KeyStatus held_lock(const std::string& key, Holder holder, LockParties parties = {}) {
  const InspectVote vote = Taken{std::move(holder), std::move(parties)};
  return {Resource::from(key).value(), summarize({vote}), {"redis://a:6379"}, {vote}};
}

/// Held for four minutes by a `run` with a ttl of 30 s.
Holder running(const std::string& note = "release 4.2") {
  Holder holder;
  holder.remaining = 28s;
  holder.age = 4min;
  holder.fence = Fence(42);
  holder.owner = Owner{"runner-9", "ci", "deploy.sh", note, 4711, /*supervised=*/true, 30s};
  return holder;
}

LockParties slots_taken(const std::string& free_slots, std::size_t limit) {
  LockParties parties;
  parties.free_slots = free_slots;
  for (std::size_t slot = 0; slot < free_slots.size(); ++slot) {
    if (free_slots[slot] == '1') continue;
    Share share{running(), slot};
    share.holder.shared = true;
    share.holder.id.text = std::to_string(slot);
    share.holder.owner->slots = limit;
    parties.first_shares.push_back(share);
    ++parties.shares;
  }
  return parties;
}

const StatusReport complete{.at = at};

const StatusReport incomplete{
    .faults = {{"redis://c:6379", Fault{FaultKind::silent, "connection refused"}}}, .at = at};

/// The locks in the given order.
ShownLocks shown(const std::vector<KeyStatus>& keys, const StatusView& view = {}) {
  ShownLocks locks(view);
  for (const KeyStatus& key : keys) locks.add(key, at);
  return locks;
}

class StatusText : public ::testing::Test {
 protected:
  StatusText() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

TEST_F(StatusText, ReportsThatThereAreNoLocks) {
  EXPECT_EQ(shown({}).text(complete, any_width), "no locks\n");
  StatusReport among_others = complete;
  among_others.other_key = "users";
  EXPECT_EQ(shown({}).text(among_others, any_width),
            "no locks of redlock-cli; there are keys of other clients, such as users: "
            "`redlock-cli status KEY` shows whether one is a lock\n");
}

TEST_F(StatusText, HasARowForEachLockAndTotals) {
  Holder foreign;
  foreign.foreign = true;
  Holder kept = running("");
  kept.owner->finished = Finished{50s, 0, {}};
  kept.remaining = 40s;
  Holder by_hand = running("");
  by_hand.owner->renewed_for = Duration::zero();
  by_hand.remaining = 75s;
  by_hand.age = std::chrono::hours(50);
  Holder shared = running();
  shared.shared = true;
  LockParties waiting;
  waiting.waiters = 12;
  const ShownLocks locks =
      shown({held_lock("gpu", shared, slots_taken("0010", 4)),
             held_lock("job9", running(), waiting), held_lock("job10", by_hand), free_lock("left"),
             held_lock("nightly", kept), held_lock("theirs", foreign)});
  EXPECT_EQ(
      locks.text(complete, any_width),
      "KEY      STATE    HOLDER                                          PID   SINCE          "
      "LEASE      WAITING  SLOTS\n"
      "gpu      slots    ci@runner-9 deploy.sh \"release 4.2\" and 2 more        08:26:00 4m    "
      "renewed             3 of 4\n"
      "job9     held     ci@runner-9 deploy.sh \"release 4.2\"             4711  08:26:00 4m    "
      "renewed    12\n"
      "job10    held     ci@runner-9 deploy.sh                           4711  2026-11-20 2d  "
      "1m left\n"
      "left     free\n"
      "nightly  kept     ci@runner-9 deploy.sh                                 08:26:00 4m    "
      "40s left\n"
      "theirs   foreign                                                                       "
      "no expiry\n"
      "6 locks: 2 held, 1 in slots, 1 kept, 1 foreign, 1 free; 12 waiting\n");
}

TEST_F(StatusText, ShowsTheProcessThatHasAllSharesAsOne) {
  Holder holder = running();
  holder.shared = true;
  LockParties parties = slots_taken("0001", 4);
  const auto cells = [&] {
    return shown({held_lock("gpu", holder, parties)}).text(complete, any_width);
  };
  const std::string alone = "deploy.sh \"release 4.2\"  4711  ";
  EXPECT_NE(cells().find(" and 2 more"), std::string::npos) << cells();
  for (Share& share : parties.first_shares) {
    share.holder.id.text = "one";
    share.holder.owner->take = 3;
  }
  EXPECT_NE(cells().find(alone), std::string::npos) << cells();
  parties.first_shares.pop_back();  // more than a server lists
  EXPECT_NE(cells().find(alone), std::string::npos) << cells();
  ++parties.shares;
  EXPECT_NE(cells().find(" and 1 more"), std::string::npos) << cells();
}

TEST(NaturalOrder, ComparesNumbersInKeysByValue) {
  const auto key = [](std::string text) { return Resource::from(std::move(text)).value(); };
  const std::string nul("a\0b", 3);
  std::vector<Resource> keys{key("job10"), key(nul), key("job9"), key("a"), key("job"), key("b")};
  std::ranges::sort(keys, comes_before);
  EXPECT_EQ(keys,
            (std::vector{key("a"), key(nul), key("b"), key("job"), key("job9"), key("job10")}));
}

TEST_F(StatusText, FoldsRowsToTheWidth) {
  const ShownLocks locks =
      shown({held_lock("a-key-that-is-much-too-long-for-this", running("a note of some length"))});
  EXPECT_EQ(locks.text(complete, 60),
            "KEY             STATE  HOLDER           SINCE        LEASE\n"
            "a-key-that-is-  held   ci@runner-9      08:26:00 4m  renewed\n"
            "much-too-long-         deploy.sh \"a\n"
            "for-this               note of some\n"
            "                       length\"\n"
            "1 lock: 1 held\n");
}

TEST_F(StatusText, EscapesTerminalControlCharacters) {
  const ShownLocks locks = shown({held_lock("x\ny\x1b[2J", running("\u202egnp.exe"))});
  const std::string text = locks.text(complete, any_width);
  EXPECT_NE(text.find("x\\ny\\x1b[2J"), std::string::npos);
  EXPECT_NE(text.find("\\u202egnp.exe"), std::string::npos);
}

TEST_F(StatusText, AlignsWideCharacters) {
  const ShownLocks locks = shown({free_lock("abcd"), free_lock("é"), free_lock("日本")});
  EXPECT_EQ(locks.text(complete, any_width),
            "KEY   STATE\nabcd  free\né     free\n日本  free\n3 locks: 3 free\n");
}

TEST_F(StatusText, CountsSlotsUpToTheGivenNumber) {
  Holder shared = running();
  shared.shared = true;
  StatusView view;
  view.slots = 2;
  const std::string text =
      shown({held_lock("gpu", shared, slots_taken("0010", 4))}, view).text(complete, any_width);
  EXPECT_NE(text.find("2 of 2"), std::string::npos) << text;
}

TEST_F(StatusText, ShowsServersWhenVerbose) {
  StatusView view;
  view.verbose = true;
  EXPECT_EQ(shown({held_lock("deploy", running(""))}, view).text(complete, any_width),
            "KEY     STATE  HOLDER                 PID   SINCE        LEASE\n"
            "deploy  held   ci@runner-9 deploy.sh  4711  08:26:00 4m  renewed\n"
            "  fence 42\n"
            "  redis://a:6379: held by ci@runner-9 (run pid 4711: deploy.sh), for 4m, last renewed "
            "2s ago\n"
            "1 lock: 1 held\n");
}

TEST_F(StatusText, ShowsAParagraphForANamedKey) {
  StatusView view;
  view.listed = false;
  EXPECT_EQ(shown({held_lock("deploy", running())}, view).text(complete, any_width),
            "deploy: held by ci@runner-9 (run pid 4711: deploy.sh), \"release 4.2\", for 4m, last "
            "renewed 2s ago\n  since 08:26:00\n  fence 42\n");
  EXPECT_EQ(shown({held_lock("deploy", running())}, view).text(complete, 50),
            "deploy: held by ci@runner-9 (run pid 4711:\n"
            "    deploy.sh), \"release 4.2\", for 4m, last\n"
            "    renewed 2s ago\n"
            "  since 08:26:00\n"
            "  fence 42\n");
}

TEST_F(StatusText, ReportsWhatCouldNotBeRead) {
  StatusView view;
  view.servers = 3;
  EXPECT_EQ(shown({}, view).text(incomplete, any_width),
            "incomplete: redis://c:6379: connection refused\nno locks\n");
  view.servers = 1;
  EXPECT_EQ(shown({}, view).text(incomplete, any_width),
            "incomplete: redis://c:6379: connection refused\n")
      << "nothing is known";
}

ShownLocks forty_locks(const StatusView& view) {
  std::vector<KeyStatus> keys;
  for (int i = 1; i <= 40; ++i) {
    LockParties waiting;
    waiting.waiters = static_cast<std::size_t>(i % 3);
    keys.push_back(held_lock("job" + std::to_string(i), running(), waiting));
  }
  return shown(keys, view);
}

/// The expected screen from tests/expected.
std::string expected(const std::string& name) {
  std::ifstream file(std::string(REDLOCK_TESTS) + "/expected/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_F(StatusText, FillsAScreenAndReportsHowMuchDoesNotFit) {
  StatusView view;
  view.servers = 3;
  const ShownLocks forty = forty_locks(view);
  EXPECT_EQ(joined(forty.screen(incomplete, 1s, 24, 80)), expected("watch-40-80x24.txt"));
  EXPECT_EQ(joined(forty.screen(incomplete, 1s, 50, 200)), expected("watch-40-200x50.txt"));
  EXPECT_EQ(joined(shown({}).screen(complete, 2s, 24, 80)),
            "2026-11-22 08:30:00, every 2s\nno locks\n\n");
}

TEST_F(StatusText, ReportsThatReadingTakesLongerThanTheInterval) {
  StatusReport slow = complete;
  slow.took = 2s;
  EXPECT_EQ(shown({}).screen(slow, 2s, 24, 80).at(0), "2026-11-22 08:30:00, every 2s");
  slow.took = 2345ms;
  EXPECT_EQ(shown({}).screen(slow, 2s, 24, 80).at(0),
            "2026-11-22 08:30:00, every 2s (reading the locks takes 2.3s)");
}

TEST_F(StatusText, NeverExceedsAScreenOfAnySize) {
  StatusView view;
  view.verbose = true;
  const ShownLocks forty = forty_locks(view);
  for (std::size_t rows = 1; rows < 60; rows += 3) {
    for (std::size_t columns = 2; columns < 120; columns += 7) {
      const auto lines = forty.screen(incomplete, 1s, rows, columns);
      EXPECT_LE(lines.size(), rows);
      for (const std::string& line : lines) EXPECT_LE(columns_of(line), columns) << line;
    }
  }
}

TEST(StatusJson, IsOneObjectOfAnyNumberOfLocks) {
  const auto json_of = [](const std::vector<KeyStatus>& locks) {
    StatusJson json;
    for (const KeyStatus& lock : locks) json.add(lock);
    return std::move(json).text({}, {}, 75);
  };
  const auto lock = [](const std::string& key) {
    return R"({"key":")" + key +
           R"(","state":"free","servers":[{"server":"redis://a:6379","state":"free"}]})";
  };
  const std::string head = R"({"command":"status","exit_code":75,"locks":[)";
  EXPECT_EQ(json_of({}), head + "]}");
  EXPECT_EQ(json_of({free_lock("a")}), head + lock("a") + "]}");
  EXPECT_EQ(json_of({free_lock("a"), free_lock("b")}), head + lock("a") + "," + lock("b") + "]}");
  EXPECT_EQ(StatusJson().text(incomplete.faults, {}, 69),
            R"({"command":"status","exit_code":69,"locks":[],)"
            R"("faults":[{"server":"redis://c:6379","fault":"connection refused"}]})");
}

/// OpenMetrics requires the samples of a metric to be adjacent.
TEST(StatusMetrics, AreGroupedByMetricNotByLock) {
  OpenMetrics metrics(std::nullopt);
  metrics.add(free_lock("a"), at);
  metrics.add(free_lock("b"), at);
  const std::string text = std::move(metrics).text();
  EXPECT_NE(text.find("redlock_lock_held{key=\"a\"} 0\nredlock_lock_held{key=\"b\"} 0\n# TYPE"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace redlock::output
