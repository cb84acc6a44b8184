#include "commands/held_command.hpp"

#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "commands/conclusion.hpp"
#include "commands/holder.hpp"
#include "commands/nesting.hpp"
#include "commands/releaser.hpp"
#include "commands/wait.hpp"
#include "output/outcome_json.hpp"
#include "output/printer.hpp"
#include "output/standard_error.hpp"
#include "proc/process_stat.hpp"
#include "proc/title.hpp"
#include "support/readable.hpp"
#include "support/spawn.hpp"
#include "support/text.hpp"

namespace redlock::commands {

namespace event = output::event;
using output::CommandResult;

HeldCommand::HeldCommand(Session& session, const RunOptions& options, guard::Front& front,
                         guard::FrontLink& link, const guard::InheritedSignals& inherited,
                         const guard::Isolation& isolation, HoldReport& report)
    : session_(session),
      options_(options),
      front_(front),
      link_(link),
      inherited_(inherited),
      isolation_(isolation),
      report_(report),
      state_(report.state) {
  if (options_.parent)
    spawn(session_.io().get_executor(), [this] { return watch_parent_process(); });
}

/// For --with-parent. The front process need not watch the parent, too: if this process hangs, the
/// end of the lease stops the command.
asio::awaitable<void> HeldCommand::watch_parent_process() {
  Readable ended(session_.io().get_executor(), options_.parent.get());
  co_await ended.wait();
  if (state_.started_at) supervisor_->stop_for(StopReason::parent_gone);
  session_.interrupt().raise();
}

void HeldCommand::conclude_interrupted() {
  if (const auto guard = link_.killed_guard())
    return report_.conclude(outcome_of_killed_guard(*guard, options_));
  // As when a terminal is closed.
  report_.conclude_signalled(
      SIGHUP, CommandResult::parent_gone,
      "the process that started redlock-cli has ended; the command was not run");
}

// --- The start ---

asio::awaitable<Started> HeldCommand::start(std::shared_ptr<HeldSet> leases, Instant granted) {
  leases_ = std::move(leases);
  granted_at_ = granted;
  if (is_fresh()) {
    state_.fresh = latest_success(leases_->leases(), session_.clock().now());
    report_.add(event::Fresh{*state_.fresh, state_.waited});
    report_.conclude(outcome_of_fresh(*state_.fresh, options_));
    co_return Started::no;
  }
  co_return co_await start_once_agreed(granted);
}

/// For --once-per. A success counts only if it is recorded for each key, because a run records it
/// for all of its keys.
bool HeldCommand::is_fresh() const {
  return options_.once_per && std::ranges::all_of(leases_->leases(), [](const Lease& lease) {
           return lease.fresh.has_value();
         });
}

/// Asks the front process before the command starts, because it may be paused. Both guards must
/// watch by then.
asio::awaitable<Started> HeldCommand::start_once_agreed(Instant granted) {
  state_.acquired_at = session_.clock().wall();
  supervisor_.emplace(session_.clock(), options_.stop, front_.page(), isolation_,
                      [this](bool got_stop_signal) { link_.command_ended(got_stop_signal); });
  if (const auto forked = fork(); !forked) co_return fail_to_start(forked.error());

  supervisor_->arm(leases_->deadline(), granted);
  const bool may_start = co_await link_.may_start();
  const bool interrupted = session_.interrupt().raised();
  if (may_start && !interrupted) co_return start_now();
  supervisor_->drop();
  co_return interrupted ? Started::interrupted : Started::paused;
}

/// Forks the command, which waits for its start.
Result<void, guard::ExecFailure> HeldCommand::fork() {
  guard::SpawnOptions spawn_options;
  spawn_options.environment =
      guard::environment_with(lease_variables(leases_->leases(), options_.servers));
  spawn_options.join_group = link_.job_group();
  spawn_options.front = front_.pid();
  return supervisor_->prepare(options_.command, std::move(spawn_options), inherited_,
                              options_.on_stop);
}

Started HeldCommand::start_now() {
  state_.leases = leases_->leases();
  report_acquired(session_, state_.leases, state_.waited);
  // One of several leases may have been lost while the front process was asked.
  Result<bool, guard::ExecFailure> started = false;
  if (!leases_->lost()) started = supervisor_->start();
  if (!started) return fail_to_start(started.error());
  if (!*started) {
    supervisor_->drop();
    report_.conclude(
        CommandResult::lost,
        "the lease had expired, or nearly, before the command could start; it was not started");
    return Started::no;
  }
  state_.started_at = session_.clock().wall();
  link_.command_started(*supervisor_, front_.page());
  spawn(session_.io().get_executor(), [this] { return report_news(); });
  front_.inherited().close(std::nullopt);
  return Started::yes;
}

Started HeldCommand::fail_to_start(const guard::ExecFailure& failure) {
  output::Outcome outcome = report_.outcome_of(CommandResult::not_started, failure.text);
  outcome.exit_code = to_int(failure.exit_code);
  report_.conclude(std::move(outcome));
  return Started::no;
}

// --- While it runs ---

void HeldCommand::move_deadline(Instant deadline, Instant next_round) {
  supervisor_->put_off_measuring(next_round);
  supervisor_->move_deadline(deadline);
}

void HeldCommand::lease_has_ended(const SetEnded& event) {
  report_.lost(event);
  supervisor_->lease_is_lost();
  const auto stopped = supervisor_->stopped();
  if (stopped && keeps_lease(*stopped)) report_.report_loss();
}

void HeldCommand::stop(StopReason why) {
  supervisor_->stop_for(why);
}

asio::awaitable<void> HeldCommand::report_news() {
  for (;;) {
    const guard::CommandNews news = co_await supervisor_->next_news();
    report(news);
  }
}

void HeldCommand::report(const guard::CommandNews& news) {
  if (const auto* began = std::get_if<guard::StopBegan>(&news))
    report_.stopping(began->why, began->delay, options_.stop);
  if (const auto* strained = std::get_if<guard::IsStrained>(&news))
    report_.add(event::Strained{strained->cost, strained->needed, options_.ttl});
  if (const auto* awaits = std::get_if<guard::AwaitsGroup>(&news))
    report_.add(event::Awaiting{awaits->pids});
  if (const auto* survives = std::get_if<guard::SurvivesKill>(&news))
    report_.add(event::Unkillable{survives->pids});
}

// --- Its end ---

asio::awaitable<Parting> HeldCommand::finish() {
  guard::CommandEnd end = co_await supervisor_->finish();
  while (const auto news = supervisor_->take_news()) report(*news);
  state_.end = std::move(end);

  // By this name, processes that the command left running see that we no longer wait for them
  // (is_enclosing_run()).
  proc::set_name(proc::releaser_title);
  const Instant ended = session_.clock().now();
  state_.held = ended - granted_at_;
  state_.ended_at = session_.clock().wall();
  report_.report_loss();
  report_.add(
      event::Ended{state_.command_exit(), state_.command_signal(), state_.held, state_.end->left});

  const bool has_ended = !state_.end->unkillable;
  if (has_ended && state_.end->hook_failure.empty()) co_return conclude_end(ended);

  // Do not release the lock: it must protect what still runs for as long as possible.
  state_.left = state_.end->left;
  report_.conclude(has_ended ? outcome_of_failed_hook(state_, options_)
                             : outcome_of_unkillable(state_, options_));
  Parting unreleased;
  unreleased.releases = false;
  co_return unreleased;
}

Parting HeldCommand::conclude_end(Instant ended) {
  if (!state_.end->swept.empty()) report_left(state_.end->swept, /*killed=*/true, false);
  report_.conclude(outcome_of_end(state_, options_));
  state_.signal = signal_of_end(state_);
  if (!state_.is_lost()) {
    const Duration held = session_.clock().now() - granted_at_;
    expire_in_ = std::max(Duration::zero(), options_.min_hold - held);
  }
  RunRecord record = run_record(state_, options_, ended);
  success_ = record.success;
  interrupted_ = record.run.result == output::word_of(CommandResult::interrupted);
  Parting parting;
  parting.terms.expire_in = expire_in_;
  parting.terms.finished = finished_owner(state_, options_, expire_in_);
  parting.terms.run = std::move(record);
  // All users of our leases are descendants of ours: without us as an ancestor, no process can
  // register.
  parting.terms.may_have_users = !state_.end->all_dead;
  return parting;
}

asio::awaitable<void> HeldCommand::released(SetReleaseResult result) {
  if (state_.fresh) {
    state_.released = result.result.decision == ReleaseDecision::released;
    co_return;
  }
  const bool was_lost = state_.is_lost();
  const bool turned_out_lost = conclude_release(state_, leases_->leases(), result);
  if (!state_.leases.empty()) {
    const bool is_ours = has_own(leases_->leases());
    report_.add(event::Released{.confirmed = state_.released,
                                .inherited = !is_ours,
                                .left_to_users = result.left_to_users,
                                .held = state_.held,
                                .expire_in = is_ours ? expire_in_ : Duration::zero()});
  }
  if (turned_out_lost) report_.report_conclusion();
  if (!turned_out_lost && !was_lost) {
    if (result.result.decision == ReleaseDecision::unavailable)
      report_.add(event::ReleasePending{options_.ttl, std::move(result.result.faults)});
    if (options_.once_per && success_ && !result.recorded)
      report_.add(event::NotRecorded{*options_.once_per});
    if (options_.once_per && interrupted_) report_.add(event::Interrupted{*options_.once_per});
  }
  if (!state_.end) co_return;

  std::vector<pid_t> left = state_.end->left;
  if (!left.empty()) co_await supervisor_->settle(left);
  state_.left = std::move(left);
  if (state_.left.empty()) co_return;
  report_left(proc::processes_text(state_.left), /*killed=*/false, result.left_to_users);
}

/// Processes left running are expected if --descendants was given, or if they run on under a parent
/// lease.
void HeldCommand::report_left(std::string processes, bool killed, bool left_to_users) {
  const bool is_protected = !has_own(state_.leases) && guards_live(state_.leases);
  report_.add(event::LeftRunning{.processes = std::move(processes),
                                 .killed = killed,
                                 .expected = options_.sets_descendants || is_protected,
                                 .unprotected = !is_protected && !killed,
                                 .left_to_users = left_to_users});
}

std::optional<FrontReport> HeldCommand::last_report() {
  if (state_.released) report_.report_missing_votes();
  const ExitAs exit_as{state_.outcome.exit_code, state_.signal};
  state_.outcome.exit_code = exit_code_of(exit_as);
  std::string text;
  if (session_.json() || options_.status_fd) text = output::run_json(state_) + "\n";
  if (session_.json()) output::StandardError::of_process().write(LOG_ERR, text);
  return FrontReport{exit_as, std::move(text)};
}

// --- The process ---

namespace {

/// An inherited lease is not released by this run, so the release could neither record the run nor
/// keep the lock for the rest of --min-hold. A --min-hold from a general setting does not count,
/// because it must not break nested runs.
std::string option_for_own_leases(const RunOptions& options) {
  if (options.once_per) return "--once-per";
  if (options.insists_on_min_hold) return "--min-hold";
  return {};
}

Demands demands_of(const RunOptions& options) {
  Demands demands{"run"};
  demands.needed_validity = options.stop.grace + options.stop.margin;
  demands.own_for = option_for_own_leases(options);
  demands.own_advice = fmt::format("give {} to that run", demands.own_for);
  demands.not_granted = "; the command was not run";
  demands.records_skips = options.records_skips;
  demands.once_per = options.once_per;
  return demands;
}

}  // namespace

void hold_command(const SessionOptions& about, const RunOptions& options, guard::Front& front,
                  guard::SignalGate& gate, const guard::InheritedSignals& inherited,
                  const guard::Isolation& isolation, output::EventWriter* events) {
  guard::leave_job();
  try {
    Session session(about, options.servers, options.server_timeout);
    const auto executor = session.io().get_executor();
    const auto link = std::make_shared<guard::FrontLink>(executor, session.clock(),
                                                         session.interrupt(), front.take_channel(),
                                                         gate, front.pid(), front.job_group());
    output::Printer printer(session.console(), session.clock(), options.resources,
                            front.job_group().value_or(0), session.json(),
                            /*reports_end=*/!session.json());
    if (options.notifies_service) {
      printer.notify([&link](const std::string& name, std::string value) {
        link->notify_service(name, std::move(value));
      });
    }
    session.events().add(printer);
    if (events != nullptr) session.events().add(*events);

    Demands demands = demands_of(options);
    link->start(front.take_shield());
    HoldReport report(session, options, demands.command);
    HeldCommand command(session, options, front, *link, inherited, isolation, report);
    HolderProcess holder(session, options, std::move(demands), *link, report, command);
    session.run(holder.live());

    isolation.remove_cgroup();
    release_leftovers(about, options.servers, session);
    output::StandardError::of_process().finish();
    // All visible effects are done, and the kernel frees memory faster than we would.
    ::_exit(0);
  } catch (const std::exception& error) {
    // The front process notices that we have ended.
    about.console.error(escape_for_terminal(error.what()));
    ::_exit(to_int(ExitCode::internal));
  }
}

}  // namespace redlock::commands
