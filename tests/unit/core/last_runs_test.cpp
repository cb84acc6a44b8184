#include "core/last_runs.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace redlock {
namespace {

using namespace std::chrono_literals;

constexpr Duration period = 20h;

PastRun run(std::uint64_t fence, Duration started) {
  PastRun run{Fence(fence), started};
  run.ended = started - 1min;
  return run;
}

LastRuns success(std::uint64_t fence, Duration started) {
  return {run(fence, started), run(fence, started)};
}

LastRuns failure(std::uint64_t fence, Duration started) {
  return {run(fence, started), std::nullopt};
}

/// The fence of the success that closes the period, 0: it is open.
std::uint64_t closed_by(const std::vector<LastRuns>& servers) {
  const auto fresh = fresh_success(servers, period);
  return fresh ? fresh->fence.value() : 0;
}

TEST(FreshSuccess, ClosesThePeriodWhateverServerKnowsOfIt) {
  struct Period {
    std::string what;
    std::vector<LastRuns> servers;
    std::uint64_t closed_by;
  };
  const std::vector<Period> rows{
      {"nothing known", {{}, {}}, 0},
      {"no server", {}, 0},
      {"one server", {success(7, 3h)}, 7},
      {"every server", {success(7, 3h), success(7, 3h), success(7, 3h)}, 7},
      {"one of three, the others forgot it", {{}, success(7, 3h), {}}, 7},
      {"a failure since", {failure(8, 1h), success(7, 3h)}, 7},
      {"a failure alone", {failure(8, 1h)}, 0},
      {"just too long ago", {success(7, period)}, 0},
      {"just in time", {success(7, period - 1ms)}, 7},
      {"started now", {success(7, 0h)}, 7},
      {"an older one at a server that missed the later one", {success(7, 27h), success(9, 3h)}, 9},
      {"of two the later one", {success(7, 4h), success(9, 3h)}, 9},
      {"of two that are too old", {success(7, 47h), success(9, 23h)}, 0},
      {"a clock that was set back a little", {success(7, -2h)}, 7},
      {"a clock that was set back a lot", {success(7, -period)}, 0},
      {"a clock that was set forward, and a good one", {success(7, 300h), success(7, 3h)}, 7},
  };
  for (const Period& row : rows) EXPECT_EQ(closed_by(row.servers), row.closed_by) << row.what;
}

TEST(FreshSuccess, IsTheMostRecentAccountOfARun) {
  EXPECT_EQ(fresh_success({success(7, 4h), success(7, 3h)}, period)->started, 3h);
}

TEST(LatestRuns, AreTheLastRunAndTheLastSuccessOfAllServers) {
  const LastRuns latest = latest_of({{}, failure(9, 1h), success(7, 30h), success(8, 3h)});
  EXPECT_EQ(latest.last->fence, Fence(9));
  EXPECT_EQ(latest.success->fence, Fence(8));
  EXPECT_FALSE(latest.newer);
  EXPECT_FALSE(latest_of({{}, {}}).last);
}

/// A server that lost its data, and whose clock was behind, has smaller fences.
TEST(LatestRuns, OfTheLargestFenceMayBeTooOldWhereAnotherIsFresh) {
  const std::vector<LastRuns> servers{success(9, 47h), success(7, 3h)};
  EXPECT_EQ(latest_of(servers).success->fence, Fence(9));
  EXPECT_EQ(closed_by(servers), 7U);
}

/// Whoever missed the last run did not end its count with it.
TEST(LatestRuns, CountWhatDidNotRunWhereTheLastRunIsKnown) {
  LastRuns missed = failure(7, 30h);
  missed.skips = Skips{9, 20h, 1h, "busy"};
  LastRuns knows = failure(9, 3h);
  EXPECT_FALSE(latest_of({missed, knows}).skips);
  knows.skips = Skips{1, 2h, 2h, "busy"};
  LastRuns knows_more = knows;
  knows_more.skips->number = 2;
  EXPECT_EQ(latest_of({missed, knows, knows_more}).skips->number, 2);
  LastRuns first;
  first.skips = Skips{1, 2h, 2h, "busy"};
  EXPECT_EQ(latest_of({first, {}}).skips->number, 1);
}

/// A server that keeps these runs, each a fence and the lease, if that is known.
LastRuns keeping(const std::vector<std::pair<std::uint64_t, std::string>>& runs) {
  LastRuns server;
  for (const auto& [fence, lease] : runs) {
    server.kept.push_back(run(fence, 1h));
    if (!lease.empty()) server.kept.back().lease = LeaseId{lease};
  }
  return server;
}

std::string shown(const std::vector<LastRuns>& servers) {
  std::string text;
  for (const PastRun& one : kept_runs(servers))
    text += std::to_string(one.fence.value()) + (one.lease ? one.lease->text : "-") + " ";
  return text;
}

TEST(KeptRuns, AreThoseOfAllServersByTheirFences) {
  EXPECT_EQ(shown({}), "");
  EXPECT_EQ(shown({keeping({{9, "d"}, {8, "c"}, {7, "b"}, {3, "a"}}),
                   keeping({{9, "d"}, {8, "c"}, {7, "b"}, {3, "a"}}), keeping({{3, "a"}})}),
            "9d 8c 7b 3a ");
  // Down for three runs, and the only one that has the next: they fill each other's gaps.
  EXPECT_EQ(shown({keeping({{9, "e"}, {3, "a"}}), keeping({{8, "d"}, {7, "c"}, {3, "a"}})}),
            "9e 8d 7c 3a ");
}

TEST(KeptRuns, WithOneFenceAreTheSharesOfSeveralLeases) {
  EXPECT_EQ(shown({keeping({{9, "a"}, {8, "x"}}), keeping({{9, "b"}, {8, "x"}})}), "9b 9a 8x ");
  // A run that another lease passed on is known without its lease.
  EXPECT_EQ(shown({keeping({{9, ""}}), keeping({{9, "a"}}), keeping({{9, ""}})}), "9a ");
  EXPECT_EQ(shown({keeping({{9, ""}, {7, ""}}), keeping({{9, ""}})}), "9- 7- ");
}

TEST(KeptRuns, AreTheMostRecentAccounts) {
  LastRuns early = keeping({{9, "a"}});
  early.kept[0].started = 2h;
  EXPECT_EQ(kept_runs({early, keeping({{9, "a"}})}).at(0).started, 1h);
}

TEST(LatestRuns, AreKeptForAsLongAsTheirRecordStates) {
  EXPECT_EQ(latest_of({{}, {}}).kept_for, std::nullopt);
  LastRuns older;
  older.kept_for = 24h * 30;
  EXPECT_EQ(latest_of({{}, older}).kept_for, 24h * 30);
}

TEST(LatestRuns, AreANewerVersionsWhereOneServerHasSuch) {
  LastRuns newer;
  newer.newer = true;
  EXPECT_TRUE(latest_of({{}, newer}).newer);
}

TEST(RunRecord, GrowsOlder) {
  const RunRecord record{run(7, 10min), Instant(1h)};
  const RunRecord later = as_of(record, Instant(1h + 5min));
  EXPECT_EQ(later.run.started, 15min);
  EXPECT_EQ(later.run.ended, 14min);
  EXPECT_EQ(as_of(later, Instant(2h)).run.started, 70min);
}

}  // namespace
}  // namespace redlock
