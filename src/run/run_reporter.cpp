#include "run/run_reporter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <syslog.h>

#include <algorithm>

#include "child/process_stat.hpp"
#include "core/last_runs.hpp"
#include "output/describe.hpp"
#include "output/outcome.hpp"
#include "output/standard_error.hpp"
#include "run/wait.hpp"
#include "support/duration.hpp"

namespace redlock::run {
namespace {

using output::CommandResult;

/// A shorter delay of our own timers is no reason to lose a lease.
constexpr Milliseconds min_told_delay{100};

constexpr int mebibyte_shift = 20;

constexpr std::string_view shield_killed_text =
    "a process that guards the lock (lock-shield) was killed";
constexpr std::string_view front_killed_text = "the front process was killed";

/// Whether one of the leases ends with the run; the others are those of a process around it.
bool has_own(const std::vector<Lease>& leases) {
  return std::ranges::any_of(leases,
                             [](const Lease& lease) { return lease.keeping == Keeping::own; });
}

}  // namespace

RunReporter::RunReporter(Session& session, const RunOptions& options)
    : session_(session), options_(options), key_(output::keys_text(options.resources)) {
  report_.outcome = output::outcome_of("run", options.resources, CommandResult::internal, {});
}

// --- How it ended ---

Finish RunReporter::conclude_not_acquired(const WaitFailure& failed) {
  report_.outcome = outcome_of_wait("run", options_, failed, session_.server_set().size());
  report_.outcome.message += "; the command was not run";
  say();
  return Finish{report_.outcome.exit_code};
}

Finish RunReporter::conclude_interrupted(int signal) {
  report_.outcome.result = CommandResult::interrupted;
  return Finish{0, signal};
}

/// --once-per: a run succeeded recently. Of several keys, the one whose period ends first.
Finish RunReporter::conclude_fresh(const std::vector<Lease>& leases,
                                   const SetReleaseResult& released) {
  report_.released = released.result.decision == ReleaseDecision::released;
  const Instant now = session_.clock().now();
  const auto first = std::ranges::max_element(
      leases, {}, [now](const Lease& lease) { return as_of(*lease.fresh, now).run.started; });
  const PastRun run = as_of(*first->fresh, now).run;
  report_.outcome = output::outcome_of(
      "run", options_.resources, CommandResult::fresh,
      fmt::format("already ran {}; next run possible in {}", output::past_run_text(run),
                  format_duration(*options_.once_per - run.started)));
  report_.outcome.exit_code = options_.fresh_exit_code;
  report_.fresh = run;
  session_.events().report(output::event::Fresh{run, report_.waited});
  say();
  return Finish{report_.outcome.exit_code};
}

Finish RunReporter::conclude_refused(std::string why) {
  return conclude(CommandResult::usage, std::move(why));
}

Finish RunReporter::conclude_not_started(const child::ExecFailure& failure) {
  report_.outcome =
      output::outcome_of("run", options_.resources, CommandResult::not_started, failure.text);
  report_.outcome.exit_code = failure.exit_code;
  say();
  return Finish{failure.exit_code};
}

Finish RunReporter::conclude_too_late() {
  return conclude(
      CommandResult::lost,
      "the lease was over, or nearly, before the command could start; it was not started");
}

Finish RunReporter::conclude_guard_killed(child::Guard which) {
  return conclude(
      CommandResult::os_error,
      fmt::format("{}; the command was not run",
                  which == child::Guard::shield ? shield_killed_text : front_killed_text));
}

/// A process of the command may still run, so the lock is left to expire.
Finish RunReporter::conclude_unkillable() {
  report_.left.assign(ending_.left.begin(), ending_.left.end());
  return conclude(CommandResult::unconfirmed,
                  output::unsafe_text(/*dead=*/false, report_.left, report_.late));
}

Finish RunReporter::conclude_ended() {
  if (!ending_.swept.empty()) {
    tell_left(fmt::format(
        "{}: processes that the command left running, killed with its pid namespace: {}", key_,
        fmt::join(ending_.swept, " ")));
  }
  if (ending_.late > Duration::zero()) {
    return conclude(CommandResult::unconfirmed,
                    output::unsafe_text(/*dead=*/true, {}, ending_.late));
  }
  if (ending_.timed_out)
    return conclude(CommandResult::timed_out, "the command was stopped at the end of --max-hold");
  if (ending_.stopped_for_lease) {
    const bool ran_on = options_.stop.on_lost == child::OnLost::warn;
    return conclude(CommandResult::lost,
                    ran_on ? "the command ran on without the lock" : "the command was stopped");
  }
  if (ending_.killed_guard == child::Guard::shield)
    return conclude(CommandResult::os_error,
                    fmt::format("{}; what ran under it was killed", shield_killed_text));
  report_.outcome = output::outcome_of("run", options_.resources, CommandResult::released, {});
  if (report_.command_signal) return Finish{0, *report_.command_signal};
  return Finish{*report_.command_exit};
}

Finish RunReporter::conclude_released(const HeldSet& leases, const SetReleaseResult& released,
                                      Finish finish, Duration expire_in) {
  const ReleaseResult& result = released.result;
  const bool is_ours = has_own(leases.leases());
  report_.released = is_ours && result.decision == ReleaseDecision::released;
  if (report_.outcome.result == CommandResult::released && !report_.released) {
    report_.outcome.result = is_ours ? CommandResult::unreleased : CommandResult::inherited;
  }
  if (was_granted()) {
    session_.events().report(output::event::Released{report_.released, !is_ours, report_.held,
                                                     is_ours ? expire_in : Duration::zero()});
  }
  if (!is_known_to_be_lost() && result.decision == ReleaseDecision::not_ours) {
    report_.outcome =
        output::outcome_of("run", {released.resource}, CommandResult::lost,
                           "lost while the command ran: " + output::not_ours_text(result.not_ours));
    if (result.not_ours) report_.outcome.holder = result.not_ours->holder;
    say();
    return Finish{report_.outcome.exit_code};
  }
  if (!is_known_to_be_lost() && result.decision == ReleaseDecision::unavailable) {
    session_.console().notice(fmt::format(
        "{}: no quorum confirmed the release yet; it is repeated in the background until what is "
        "left expires, within {}; {}",
        key_, format_duration(options_.ttl.length()), output::faults_text(result.faults)));
  }
  if (!released.recorded) report_unrecorded();
  return finish;
}

void RunReporter::report_left(const std::vector<pid_t>& left) {
  report_.left.assign(left.begin(), left.end());
  if (left.empty()) return;
  const std::string_view advice =
      has_own(report_.leases) ? "; the lock is not kept for them, as --descendants wait would do"
                              : "";
  tell_left(fmt::format("{}: processes that the command left running: {}{}", key_,
                        fmt::join(left, " "), advice));
}

// --- While it runs ---

void RunReporter::report_granted(const std::vector<Lease>& leases) {
  report_.leases = leases;
  report_acquired(session_, leases, report_.waited);
}

void RunReporter::report_turn_given_up() const {
  session_.console().detail(fmt::format("{}: stopped (^Z): lock released", key_));
}

void RunReporter::report_extended(bool after_trouble) {
  trouble_.clear();
  report_missing_votes();
  after_trouble ? session_.events().report(output::event::RenewedAgain{})
                : session_.console().debug(fmt::format("{}: extended", key_));
}

void RunReporter::report_trouble(const Resource& resource, const LeaseInTrouble& trouble) {
  trouble_ = output::faults_text(trouble.faults);
  if (trouble.first)
    session_.events().report(output::event::RenewalFailed{resource, trouble.faults});
}

/// Reported only after the stop signal, which no message may delay.
void RunReporter::note_lost(const Resource& resource, const LeaseEnded& end) {
  report_.reason = output::ended_text(end);
  lost_ = resource;
  if (ending_.timed_out) report_loss();  // its stop signal was sent
}

/// Why the command is being stopped: the lease was lost, it could not be renewed, or we did not
/// run.
void RunReporter::report_stopping(const child::Delay& delay) {
  if (lost_) {
    report_loss();
    return report_stopping_for_lease();
  }
  const bool delayed = delay.length >= min_told_delay;
  if (delayed) report_.reason = output::delay_text(delay.length, delay.suspended);
  if (!trouble_.empty()) {
    report_.reason = "cannot renew: " + trouble_ + (delayed ? "; " + report_.reason : "");
  }
  if (report_.reason.empty())
    report_.reason = "cannot renew: no answer yet from a quorum of servers";
  session_.events().report(output::event::Lost{std::nullopt, report_.reason});
  report_stopping_for_lease();
}

void RunReporter::report_max_hold() {
  ending_.timed_out = true;
  session_.events().report(output::event::Stopping{child::StopReason::max_hold});
}

void RunReporter::report_strained(const StopCost& cost, Duration needed) const {
  session_.console().notice(
      fmt::format("{}: to stop the command's {} processes ({} MiB) may take {}, more than --ttl {} "
                  "leaves; use a longer --ttl",
                  key_, cost.processes, cost.private_bytes >> mebibyte_shift,
                  format_duration(needed), format_duration(options_.ttl.length())));
}

void RunReporter::report_unkillable(const std::vector<pid_t>& pids) const {
  session_.console().error(
      fmt::format("{}: cannot be killed; the lock is kept as long as it can be: {}", key_,
                  fmt::join(pids, " ")));
}

void RunReporter::report_awaiting(const std::vector<pid_t>& pids) const {
  session_.events().report(output::event::Awaiting{{pids.begin(), pids.end()}});
  std::vector<std::string> names;
  for (const pid_t pid : pids) names.push_back(child::process_text(pid));
  session_.console().notice(
      fmt::format("{}: a signal ended the command; the lock is kept until the rest of its process "
                  "group has ended: {}",
                  key_, fmt::join(names, ", ")));
}

void RunReporter::report_outlasting(const std::vector<pid_t>& nested_runs) const {
  session_.console().notice(
      fmt::format("{}: the lock is kept for runs within this one that still run: {}", key_,
                  fmt::join(nested_runs, " ")));
}

void RunReporter::report_command_ended(const child::Ending& ending, Duration held) {
  if (lost_) report_loss();
  ending_ = ending;
  report_.held = held;
  report_.ended_at = session_.clock().wall();
  report_.late = ending.late;
  if (!ending.unkillable) {  // else its status tells nothing
    if (WIFEXITED(ending.status)) report_.command_exit = WEXITSTATUS(ending.status);
    if (WIFSIGNALED(ending.status)) report_.command_signal = WTERMSIG(ending.status);
  }
  session_.events().report(output::event::Ended{report_.command_exit,
                                                report_.command_signal,
                                                held,
                                                {ending.left.begin(), ending.left.end()}});
}

std::optional<Owner> RunReporter::finished_owner(Duration expire_in) const {
  if (expire_in <= Duration::zero()) return std::nullopt;
  Owner owner = options_.owner;
  owner.renewed_for = Duration::zero();
  owner.finished = Finished{expire_in, report_.command_exit, report_.command_signal};
  return owner;
}

RunRecord RunReporter::run_record(Instant ended) const {
  PastRun run;
  run.started = report_.held;
  run.ended = Duration::zero();
  run.waited = report_.waited;
  run.result = output::word_of(report_.outcome.result);
  run.exit_code = report_.command_exit;
  run.signal = report_.command_signal;
  RunRecord record{std::move(run), ended};
  record.remember_for = options_.once_per.value_or(Duration::zero());
  record.success = report_.outcome.result == CommandResult::released && report_.command_exit == 0;
  return record;
}

void RunReporter::report_not_acquired(const Finish& finish) {
  if (was_granted()) return;
  report_.outcome.exit_code = exit_code_of(finish);
  run::report_not_acquired(session_, report_.outcome, report_.waited);
}

std::string RunReporter::write_report(const Finish& finish) {
  if (report_.released) report_missing_votes();
  report_.outcome.exit_code = exit_code_of(finish);
  if (!session_.json() && !options_.status_fd) return {};
  std::string line = output::run_json(report_) + "\n";
  if (session_.json()) output::StandardError::of_process().write(LOG_ERR, line);
  return line;
}

// --- Helpers ---

/// Even with -q: work that goes on without the lock is what a lock is there to prevent. Expected is
/// what --descendants speaks of, and what goes on under the lease of a process around this one.
void RunReporter::tell_left(const std::string& text) const {
  const bool is_expected = options_.sets_descendants || !has_own(report_.leases);
  is_expected ? session_.console().notice(text) : session_.console().error(text);
}

Finish RunReporter::conclude(CommandResult result, std::string message) {
  report_.outcome = output::outcome_of("run", options_.resources, result, std::move(message));
  say();
  return Finish{report_.outcome.exit_code};
}

/// A busy lock and a run that is not needed are expected answers; any other failure is an error.
void RunReporter::say() const {
  if (session_.json()) return;  // the report says it
  const std::string line =
      fmt::format("{}: {}", output::keys_text(report_.outcome.resources), report_.outcome.message);
  const bool expected = report_.outcome.result == CommandResult::busy ||
                        report_.outcome.result == CommandResult::fresh;
  expected ? session_.console().notice(line) : session_.console().error(line);
}

void RunReporter::report_loss() {
  session_.events().report(output::event::Lost{lost_, report_.reason});
  lost_.reset();
}

/// With --on-lost warn the command runs on.
void RunReporter::report_stopping_for_lease() const {
  if (options_.stop.on_lost == child::OnLost::warn) return;
  session_.events().report(output::event::Stopping{child::StopReason::lease});
}

/// A quorum is enough, but with some servers missing it may soon be lost. Reported once for each
/// state.
void RunReporter::report_missing_votes() {
  std::string text =
      output::missing_votes_text(session_.server_set().faults(), session_.server_set().size());
  if (text == missing_votes_) return;
  missing_votes_ = std::move(text);
  session_.console().detail(fmt::format(
      "{}: {}", key_, missing_votes_.empty() ? "all servers vote again" : missing_votes_));
}

/// Without a quorum that remembers a success, the next run may not learn of it.
void RunReporter::report_unrecorded() const {
  const bool succeeded = report_.command_exit == 0 && !is_known_to_be_lost();
  if (!options_.once_per || !succeeded) return;
  session_.console().error(
      fmt::format("{}: the command succeeded, but no quorum of servers has recorded it yet: it may "
                  "run again within --once-per {}",
                  key_, format_duration(*options_.once_per)));
}

bool RunReporter::is_known_to_be_lost() const {
  return ending_.stopped_for_lease || report_.outcome.result == CommandResult::lost ||
         report_.outcome.result == CommandResult::unconfirmed;
}

}  // namespace redlock::run
