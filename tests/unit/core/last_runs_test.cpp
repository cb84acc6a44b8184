#include "core/last_runs.hpp"

#include <gtest/gtest.h>

#include <string>

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

TEST(LatestRuns, AreKeptForAsLongAsTheirRecordSays) {
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
