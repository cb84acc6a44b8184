#pragma once

#include <optional>
#include <vector>

#include "core/vote.hpp"

namespace redlock {

/// What several servers remember of the runs of a lock, taken together. Pure.
/// | A success is recorded by a quorum under its lease, and any later lease has the grants of a
/// quorum, so one of these servers at least knows of it. Therefore one is enough.

/// The success that closes the period: the latest of those that started less than `period` ago, by
/// the clock of the server that shows it. Nothing: the period is open. A start that lies less than
/// `period` in the future counts as well, since a clock may have been set back a little; one
/// further ahead shows only that the clock is wrong.
std::optional<PastRun> fresh_success(const std::vector<LastRuns>& servers, Duration period);

/// The last run and the last success of all. Of one run, the most recent account. `unreadable`: at
/// one of the servers. `skips`: where the last run is known, as others did not end the count with
/// it.
LastRuns latest_of(const std::vector<LastRuns>& servers);

/// The runs that any of the servers keeps, each once, by its fence, the latest first. Of one run,
/// the most recent account.
std::vector<PastRun> kept_runs(const std::vector<LastRuns>& servers);

/// The same, with the ages that it has at `now`.
RunRecord as_of(RunRecord record, Instant now);

}  // namespace redlock
