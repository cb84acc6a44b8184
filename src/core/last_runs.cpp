#include "core/last_runs.hpp"

#include <algorithm>
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
  return latest;
}

RunRecord as_of(RunRecord record, Instant now) {
  const Duration span = now - record.as_of;
  record.run.started += span;
  if (record.run.ended) *record.run.ended += span;
  record.as_of = now;
  return record;
}

}  // namespace redlock
