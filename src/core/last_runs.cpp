#include "core/last_runs.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace redlock {
namespace {

void keep_later(std::optional<PastRun>& latest, const std::optional<PastRun>& run) {
  if (!run) return;
  const auto order = [](const PastRun& one) { return std::pair(one.fence, -one.started); };
  if (!latest || order(*latest) < order(*run)) latest = run;
}

}  // namespace

std::optional<PastRun> fresh_success(const std::vector<LastRuns>& servers, Duration period) {
  std::optional<PastRun> fresh;
  for (const LastRuns& runs : servers) {
    if (runs.success && runs.success->started < period && runs.success->started > -period)
      keep_later(fresh, runs.success);
  }
  return fresh;
}

LastRuns latest_of(const std::vector<LastRuns>& servers) {
  LastRuns latest;
  for (const LastRuns& runs : servers) {
    keep_later(latest.last, runs.last);
    keep_later(latest.success, runs.success);
    latest.newer = latest.newer || runs.newer;
    latest.kept_for = std::max(latest.kept_for, runs.kept_for);
    if (runs.unreadable) latest.unreadable = runs.unreadable;
  }
  for (const LastRuns& runs : servers) {
    const bool has_last = !latest.last || (runs.last && runs.last->fence == latest.last->fence);
    const bool has_more =
        runs.skips && (!latest.skips || latest.skips->number < runs.skips->number);
    if (has_last && has_more) latest.skips = runs.skips;
  }
  return latest;
}

std::vector<PastRun> kept_runs(const std::vector<LastRuns>& servers) {
  std::vector<PastRun> runs;
  for (const LastRuns& server : servers) std::ranges::copy(server.kept, std::back_inserter(runs));
  // Shares of one lock may have the same fence. Of these, the one whose lease is unknown comes
  // last.
  std::ranges::sort(runs, [](const PastRun& a, const PastRun& b) {
    if (a.fence != b.fence) return a.fence > b.fence;
    if (a.lease != b.lease) return a.lease > b.lease;
    return a.started < b.started;
  });
  const auto is_same = [](const PastRun& a, const PastRun& b) {
    return a.fence == b.fence && (!b.lease || a.lease == b.lease);
  };
  runs.erase(std::unique(runs.begin(), runs.end(), is_same), runs.end());
  return runs;
}

RunRecord as_of(RunRecord record, Instant now) {
  const Duration span = now - record.as_of;
  record.run.started += span;
  if (record.run.ended) *record.run.ended += span;
  record.as_of = now;
  return record;
}

}  // namespace redlock
