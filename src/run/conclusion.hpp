#pragma once

#include <optional>
#include <string>

#include "core/vote.hpp"
#include "engine/held_set.hpp"
#include "output/run_state.hpp"
#include "run/options.hpp"

namespace redlock::run {

/// What comes of the state of a run: pure functions that choose the result, the exit code and the
/// words for its end, and what the servers are to remember of it.

/// The command has ended, and what had to end with it is dead; before the release.
output::Outcome outcome_of_end(const output::RunState& state, const RunOptions& options);

/// The holder was asked to stop before the command started.
output::Outcome outcome_of_early_stop(std::string_view command, const LockOptions& options,
                                      const StopRequest& request);

/// The signal to die of, where outcome_of_end() is the command's own end; 0: none.
int signal_of_end(const output::RunState& state);

/// The front process or the shield was killed before the command started.
output::Outcome outcome_of_killed_guard(child::StopReason guard, const RunOptions& options);

/// A process of the command could not be killed and may still run, so the lock is left to expire.
output::Outcome outcome_of_unkillable(const output::RunState& state, const RunOptions& options);

/// What --on-stop ran did not do its work, so the lock is left to expire.
output::Outcome outcome_of_failed_hook(const output::RunState& state, const RunOptions& options);

/// What the release of `leases` makes of the outcome before it: sets `state.released`, and
/// `state.outcome` where a lease turned out to be lost. True when it did.
bool conclude_release(output::RunState& state, const std::vector<Lease>& leases,
                      const SetReleaseResult& released);

/// --once-per: a run succeeded recently under each of these leases. Of several keys, the one whose
/// period ends first.
PastRun latest_success(const std::vector<Lease>& leases, Instant now);
output::Outcome outcome_of_fresh(const PastRun& run, const RunOptions& options);

/// Why a measured delay or failed rounds of renewal stop the command.
std::string reason_for_stop(const std::string& trouble, const child::Delay& delay);

/// Whether one of the leases ends with the run; the others are those of a process around it.
bool has_own(const std::vector<Lease>& leases);

/// The owner record for as long as the lease lasts after the command's end; nullopt when it is
/// released at once.
std::optional<Owner> finished_owner(const output::RunState& state, const RunOptions& options,
                                    Duration expire_in);

/// What the servers are to remember of the run. `ended`: when the command did.
RunRecord run_record(const output::RunState& state, const RunOptions& options, Instant ended);

}  // namespace redlock::run
