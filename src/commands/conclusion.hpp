#pragma once

#include <optional>
#include <string>

#include "commands/options.hpp"
#include "core/vote.hpp"
#include "engine/held_set.hpp"
#include "output/run_state.hpp"

namespace redlock::commands {

/// Pure functions that derive from the state of a run its result, exit code and final message, and
/// the record that the servers keep of it.

/// For a command that has ended, with all processes that had to end with it dead, before the
/// release.
output::Outcome outcome_of_end(const output::RunState& state, const RunOptions& options);

/// For a holder that was asked to stop before the command started.
output::Outcome outcome_of_early_stop(std::string_view command, const LockOptions& options,
                                      const StopRequest& request);

/// Why the command under a lease is stopped after this request.
StopReason reason_of(const StopRequest& request);

/// The signal to die of, if the command died of one and outcome_of_end() reports the command's own
/// end; else 0.
int signal_of_end(const output::RunState& state);

/// For a front process or shield that was killed before the command started.
output::Outcome outcome_of_killed_guard(StopReason guard, const RunOptions& options);

/// For a process of the command that could not be killed and may still run, so that the lock is
/// left to expire.
output::Outcome outcome_of_unkillable(const output::RunState& state, const RunOptions& options);

/// For a --on-stop command that failed, so that the lock is left to expire.
output::Outcome outcome_of_failed_hook(const output::RunState& state, const RunOptions& options);

/// Updates the state after the release of `leases`: sets `state.released`, and `state.outcome` if a
/// lease turned out to be lost. Returns whether one did.
bool conclude_release(output::RunState& state, const std::vector<Lease>& leases,
                      const SetReleaseResult& released);

/// For --once-per, when a run has succeeded recently under each of these leases: the one whose
/// period ends first.
PastRun latest_success(const std::vector<Lease>& leases, Instant now);
output::Outcome outcome_of_fresh(const PastRun& run, const RunOptions& options);

/// Why the command is stopped, as a clause for the user: `trouble` is why renewals failed (may be
/// empty), `delay` the longest delay of this process.
std::string reason_for_stop(const std::string& trouble, const guard::Delay& delay);

/// Whether one of the leases belongs to the run and ends with it. The others are kept by an
/// enclosing run or acquire.
bool has_own(const std::vector<Lease>& leases);

/// Whether each of the leases that are guarded by an ancestor of ours still is.
bool guards_live(const std::vector<Lease>& leases);

/// The owner record for as long as the lease lasts after the command's end; nullopt when it is
/// released at once.
std::optional<Owner> finished_owner(const output::RunState& state, const RunOptions& options,
                                    Duration expire_in);

/// The record that the servers keep of the run. `ended`: when the command ended. A command that was
/// asked to end did not succeed, even if it exited with 0: most programs clean up and do that.
RunRecord run_record(const output::RunState& state, const RunOptions& options, Instant ended);

}  // namespace redlock::commands
