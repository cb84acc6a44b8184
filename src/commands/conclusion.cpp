#include "commands/conclusion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "commands/exit_as.hpp"
#include "core/last_runs.hpp"
#include "output/failure_text.hpp"
#include "output/past_runs.hpp"
#include "output/request_text.hpp"
#include "support/duration.hpp"

namespace redlock::commands {
namespace {

using output::CommandResult;
using output::outcome_of;

/// A shorter delay of our own timers cannot explain the loss of a lease.
constexpr Milliseconds min_reported_delay{100};

/// PastRun::result of a success whose exit status alone does not show it.
constexpr std::string_view succeeded_word = "succeeded";

bool exits_well(std::optional<int> status, const RunOptions& options) {
  return status == 0 || (status && std::ranges::find(options.success_codes, *status) !=
                                       options.success_codes.end());
}

std::string_view killed_text(StopReason guard) {
  return guard == StopReason::shield_killed
             ? "a process that guards the lock (lock-shield) was killed"
             : "the front process was killed";
}

}  // namespace

output::Outcome outcome_of_end(const output::RunState& state, const RunOptions& options) {
  const guard::CommandEnd& end = *state.end;
  if (end.late > Duration::zero()) {
    return outcome_of("run", options.resources, CommandResult::unconfirmed,
                      output::unsafe_text(/*dead=*/true, {}, end.late));
  }
  if (end.stopped == StopReason::max_hold) {
    return outcome_of("run", options.resources, CommandResult::timed_out,
                      "the command was stopped at the end of --max-hold");
  }
  const bool is_requested =
      end.stopped == StopReason::request || end.stopped == StopReason::replaced;
  const bool is_asked = is_requested || end.stopped == StopReason::parent_gone;
  // If a lease was lost while the command was being stopped for one of these reasons, that counts
  // as a loss below, so that the exit code is never 0.
  if (is_asked && !state.loss) {
    output::Outcome outcome =
        is_requested
            ? outcome_of("run", options.resources, CommandResult::stopped,
                         output::stopped_text(*state.stop_request))
            : outcome_of(
                  "run", options.resources, CommandResult::parent_gone,
                  "the command was stopped because the process that started redlock-cli has ended");
    outcome.exit_code = state.command_exit().value_or(0);
    return outcome;
  }
  if (end.stopped == StopReason::lease || is_asked) {
    const bool ran_on = options.stop.on_lost == OnLost::warn;
    return outcome_of("run", options.resources, CommandResult::lost,
                      ran_on ? "lost; the command ran on without the lock (exit status 79)"
                             : "lost; the command was stopped (exit status 79)");
  }
  if (end.stopped == StopReason::shield_killed) {
    return outcome_of("run", options.resources, CommandResult::os_error,
                      fmt::format("{}; the command was killed", killed_text(*end.stopped)));
  }
  output::Outcome outcome = outcome_of("run", options.resources, CommandResult::released, {});
  if (const auto exit_code = state.command_exit()) outcome.exit_code = *exit_code;
  return outcome;
}

output::Outcome outcome_of_killed_guard(StopReason guard, const RunOptions& options) {
  return outcome_of("run", options.resources, CommandResult::os_error,
                    fmt::format("{}; the command was not run", killed_text(guard)));
}

output::Outcome outcome_of_early_stop(std::string_view command, const LockOptions& options,
                                      const StopRequest& request) {
  output::Outcome outcome =
      outcome_of(command, options.resources, CommandResult::stopped, output::stopped_text(request));
  outcome.exit_code = exit_code_of({0, SIGTERM});
  return outcome;
}

StopReason reason_of(const StopRequest& request) {
  return request.newer ? StopReason::replaced : StopReason::request;
}

int signal_of_end(const output::RunState& state) {
  const CommandResult result = state.outcome.result;
  const bool is_own = result == CommandResult::released || result == CommandResult::parent_gone ||
                      result == CommandResult::stopped;
  return is_own ? state.command_signal().value_or(0) : 0;
}

output::Outcome outcome_of_unkillable(const output::RunState& state, const RunOptions& options) {
  return outcome_of("run", options.resources, CommandResult::unconfirmed,
                    output::unsafe_text(/*dead=*/false, state.left, state.end->late));
}

output::Outcome outcome_of_failed_hook(const output::RunState& state, const RunOptions& options) {
  return outcome_of("run", options.resources, CommandResult::unconfirmed,
                    fmt::format("UNSAFE: {}: what it should have stopped may outlive the lock, "
                                "which was not released",
                                state.end->hook_failure));
}

bool conclude_release(output::RunState& state, const std::vector<Lease>& leases,
                      const SetReleaseResult& released) {
  const ReleaseResult& result = released.result;
  const bool is_ours = has_own(leases);
  // A run that lost its lease after it had succeeded has nothing left to lose.
  const bool is_gone = released.confirmed && result.decision == ReleaseDecision::not_ours;
  state.released = is_ours && (is_gone || result.decision == ReleaseDecision::released);
  if (state.outcome.result == CommandResult::released && !state.released)
    state.outcome.result = is_ours ? CommandResult::unreleased : CommandResult::inherited;
  if (state.is_lost() || is_gone || result.decision != ReleaseDecision::not_ours) return false;
  state.outcome =
      outcome_of("run", {released.resource}, CommandResult::lost,
                 "lost while the command ran: " + output::not_ours_text(result.not_ours));
  if (result.not_ours) state.outcome.holder = result.not_ours->holder;
  state.signal = 0;
  return true;
}

PastRun latest_success(const std::vector<Lease>& leases, Instant now) {
  const auto first = std::ranges::max_element(
      leases, {}, [now](const Lease& lease) { return as_of(*lease.fresh, now).run.started; });
  return as_of(*first->fresh, now).run;
}

output::Outcome outcome_of_fresh(const PastRun& run, const RunOptions& options) {
  output::Outcome outcome =
      outcome_of("run", options.resources, CommandResult::fresh,
                 fmt::format("already ran {}; next run possible in {}", output::past_run_text(run),
                             format_duration(*options.once_per - run.started)));
  outcome.exit_code = options.fresh_exit_code;
  return outcome;
}

std::string reason_for_stop(const std::string& trouble, const guard::Delay& delay) {
  const bool is_delayed = delay.length >= min_reported_delay;
  std::string delay_text;
  if (is_delayed) delay_text = output::delay_text(delay.length, delay.suspended);
  if (!trouble.empty())
    return "cannot renew: " + trouble + (is_delayed ? "; " + delay_text : std::string());
  return is_delayed ? delay_text : "cannot renew: no answer yet from a quorum of servers";
}

bool has_own(const std::vector<Lease>& leases) {
  return std::ranges::any_of(leases,
                             [](const Lease& lease) { return lease.keeping == Keeping::own; });
}

bool guards_live(const std::vector<Lease>& leases) {
  return std::ranges::all_of(
      leases, [](const Lease& lease) { return !lease.guard_lives || lease.guard_lives(); });
}

std::optional<Owner> finished_owner(const output::RunState& state, const RunOptions& options,
                                    Duration expire_in) {
  if (expire_in <= Duration::zero()) return std::nullopt;
  Owner owner = options.owner;
  owner.renewed_for = Duration::zero();
  owner.stoppable = false;
  owner.finished = Finished{expire_in, state.command_exit(), state.command_signal()};
  return owner;
}

RunRecord run_record(const output::RunState& state, const RunOptions& options, Instant ended) {
  PastRun run;
  run.started = state.held;
  run.ended = Duration::zero();
  run.waited = state.waited;
  run.result = output::word_of(state.outcome.result);
  run.exit_code = state.command_exit();
  run.signal = state.command_signal();
  RunRecord record{std::move(run), ended};
  record.result_if_lost = output::word_of(CommandResult::lost);
  record.remember_for = options.once_per.value_or(Duration::zero());
  record.success =
      state.outcome.result == CommandResult::released && exits_well(state.command_exit(), options);
  if (record.success && state.command_exit() != 0) record.run.result = succeeded_word;
  if (record.success && state.end->interrupted) {
    record.success = false;
    record.run.result = output::word_of(CommandResult::interrupted);
  }
  return record;
}

}  // namespace redlock::commands
