#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/vote.hpp"

namespace redlock::output {

/// The recorded runs of a lock as text for people. The functions are pure. Text from servers and
/// records is returned escaped for the terminal.

/// `3h ago on db2 (12m, exit 0)`.
std::string past_run_text(const PastRun& run);

/// The last run, and the last successful one if that is a different run, one line each. `moment`
/// formats the time that was `ago`.
std::vector<std::string> runs_lines(const LastRuns& runs,
                                    const std::function<std::string(Duration ago)>& moment);

/// `status --runs`: a line for each recorded run, `3h ago, at 03:00:01: alice@db2 (backup) (waited
/// 0ms, held 12m, exit 0)`, and a line for each reason why runs may be missing.
std::vector<std::string> kept_runs_lines(const std::vector<PastRun>& kept, const LastRuns& runs,
                                         const std::function<std::string(Duration ago)>& moment);

/// `skipped at least 3 times since 03:00:01 (busy)`.
std::string skips_text(const Skips& skips, const std::function<std::string(Duration ago)>& moment);

/// `status --max-age`: `last success 3h ago on db2 (12m, exit 0), within 26h`. `recent`: the last
/// success is within `max_age`.
std::string check_text(const LastRuns& runs, Duration max_age, bool recent);

}  // namespace redlock::output
