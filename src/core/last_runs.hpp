#pragma once

#include <optional>
#include <vector>

#include "core/vote.hpp"

namespace redlock {

/// Combines what several servers remember of the runs of a lock. Pure functions.
///
/// A quorum records a success while it has the lease, and any later lease has grants from a quorum.
/// So at least one of the later lease's servers knows of the success, and one account is enough.

/// The latest success that started less than `period` ago, by the clock of the server that shows
/// it; nullopt if there is none, so that the command may run again. A start less than `period` in
/// the future counts as well, since a clock may have been set back a little. A start further in the
/// future only shows that the clock is wrong.
std::optional<PastRun> fresh_success(const std::vector<LastRuns>& servers, Duration period);

/// The last run and the last success at any server; of one run, the most recent account.
/// `unreadable` is set if any server could not read its record. `skips` comes from servers that
/// know the last run: the others did not reset their count when it was recorded.
LastRuns latest_of(const std::vector<LastRuns>& servers);

/// The runs that any server keeps, each once, ordered by fence, the latest first; of one run, the
/// most recent account.
std::vector<PastRun> kept_runs(const std::vector<LastRuns>& servers);

/// The record with its ages as of `now`.
RunRecord as_of(RunRecord record, Instant now);

}  // namespace redlock
