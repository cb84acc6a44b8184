#include "commands/held_script.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <utility>

#include "commands/holder.hpp"
#include "commands/releaser.hpp"
#include "commands/wait.hpp"
#include "output/standard_error.hpp"
#include "proc/cpu_share.hpp"
#include "proc/descriptors.hpp"
#include "support/duration.hpp"
#include "support/readable.hpp"
#include "support/spawn.hpp"
#include "support/text.hpp"

namespace redlock::commands {

namespace event = output::event;
using output::CommandResult;

HeldScript::HeldScript(Session& session, AcquireOptions& options, guard::FrontLink& link,
                       pid_t job_group, HoldReport& report)
    : session_(session),
      plan_(options.background->stop),
      owner_(options.owner),
      process_(options.background->process ? &*options.background->process : nullptr),
      link_(link),
      job_group_(job_group),
      report_(report),
      output_(options, session.json()),
      changed_(session.clock().make_event()) {
  if (process_ == nullptr) return;
  guard_.emplace(session.clock(), *process_, plan_);
  spawn(session_.io().get_executor(), [this] { return watch_process(); });
}

/// Ends whatever is going on when the process has ended, because the leases are no longer needed.
asio::awaitable<void> HeldScript::watch_process() {
  Readable ended(session_.io().get_executor(), process_->fd());
  co_await ended.wait();
  guard_->process_has_ended();
  changed_->notify();
  session_.interrupt().raise();
  link_.give_up_hand_over();
}

std::string HeldScript::process_has_ended() const {
  return fmt::format("process {} has ended", process_->pid());
}

void HeldScript::conclude_interrupted() {
  report_.conclude(CommandResult::os_error,
                   process_ != nullptr && process_->ended()
                       ? process_has_ended()
                       : "the process that was to hand the lock over was killed; nothing was "
                         "locked");
}

// --- The hand-over ---

asio::awaitable<Started> HeldScript::start(std::shared_ptr<HeldSet> leases, Instant granted) {
  leases_ = std::move(leases);
  granted_at_ = granted;
  report_.state.leases = leases_->leases();
  report_acquired(session_, report_.state.leases, report_.state.waited);
  undone_ = co_await hand_over();
  if (undone_) co_return Started::no;

  output::StandardError::of_process().close();
  proc::detach_from_caller();
  if (guard_) guard_->arm(leases_->deadline(), granted_at_);
  co_return Started::yes;
}

/// Returns why the script does not get the leases; nullopt: it has them.
asio::awaitable<std::optional<std::string>> HeldScript::hand_over() {
  const std::string not_handed_over = "the lease could not be handed over";
  auto text = output_.write(leases_->leases());
  if (!text) co_return std::move(text.error());
  proc::leave_session(job_group_);
  proc::claim_cpu_share();
  // Renew from now on, because the front process may be paused with its job for longer than the
  // lease lasts.
  leases_->keep();
  if (process_ != nullptr && process_->ended()) co_return process_has_ended();
  reported_ = link_.report(0, 0, std::move(*text));
  if (!reported_) co_return not_handed_over;
  const bool handed_over = co_await link_.until_handed_over();
  if (!handed_over) co_return not_handed_over;
  co_return std::nullopt;
}

// --- While it runs ---

void HeldScript::move_deadline(Instant deadline, Instant next_round) {
  if (!guard_) return;
  guard_->put_off_measuring(next_round);
  guard_->move_deadline(deadline);
}

void HeldScript::lease_has_ended(const SetEnded& event) {
  const auto& not_ours = event.end.not_ours;
  released_by_hand_ = not_ours && not_ours->why == NotOurs::Why::released;
  if (!released_by_hand_) report_.lost(event);
  if (guard_) released_by_hand_ ? guard_->lease_is_released() : guard_->lease_is_lost();
  if (!guard_) report_.report_loss();
  changed_->notify();
}

void HeldScript::stop(StopReason why) {
  // Without a process there is nothing that we could stop.
  if (guard_) guard_->stop_for(why);
}

/// The user of the process must learn why it dies, before it does.
void HeldScript::announce_stop(StopReason why) {
  event::ScriptStopping script{process_->pid(), report_.stopping_event(why, plan_), std::nullopt,
                               plan_.on_lost};
  if (why == StopReason::lease) {
    report_.note_loss(guard_->worst_delay());
    script.lost = event::Lost{report_.state.loss->resource, report_.state.loss->reason};
  }
  report_.add(script);
}

// --- Its end ---

asio::awaitable<Parting> HeldScript::finish() {
  Parting parting;
  if (guard_) {
    parting = co_await finish_process();
  } else {
    const bool reached = co_await reach_max_hold();
    if (reached) parting.terms.stop_users = stop_request_at_max_hold();
  }
  report_.report_loss();
  co_return parting;
}

/// False if a lease was lost before: the others are of no use without it.
asio::awaitable<bool> HeldScript::reach_max_hold() {
  const Instant hold_until = later(granted_at_, *plan_.max_hold);
  while (!leases_->lost() && session_.clock().now() < hold_until)
    co_await changed_->wait_until(hold_until);
  co_return !leases_->lost();
}

/// For the runs that work under the leases elsewhere (PROTOCOL U3).
StopRequest HeldScript::stop_request_at_max_hold() const {
  return {owner_.host, owner_.user,
          fmt::format("--max-hold {} has ended", format_duration(*plan_.max_hold))};
}

asio::awaitable<Parting> HeldScript::finish_process() {
  guard::GuardEnd end;
  const auto why = co_await guard_->until_stop_is_due();
  if (why) {
    announce_stop(*why);
    co_await guard_->send_stop_signal();
    report_.stopping(*why, guard_->worst_delay(), plan_);
    end = co_await guard_->finish();
  }
  if (!end.left.empty() || end.late > Duration::zero())
    report_.add(event::ScriptUnsafe{process_->pid(), {end.left.begin(), end.left.end()}, end.late});
  // With several locks, the others must not become free while the process still runs, whether or
  // not it was stopped.
  if (leases_->leases().size() > 1) {
    while (!released_by_hand_ && !process_->ended()) co_await changed_->wait_until(Instant::max());
  }
  Parting parting;
  parting.releases = end.left.empty();
  if (why == StopReason::max_hold) parting.terms.stop_users = stop_request_at_max_hold();
  co_return parting;
}

asio::awaitable<void> HeldScript::released(SetReleaseResult result) {
  report_.released(result, granted_at_);
  if (!undone_) co_return;
  output_.take_back();
  report_.undone(*undone_);
}

/// If no report arrives, the front process concludes that the holder process was killed and that
/// the lock expires by itself. So it must get at least a short report.
std::optional<FrontReport> HeldScript::last_report() {
  if (reported_) return std::nullopt;
  // No process depends on us any more, and writing the last line may block.
  output::StandardError::of_process().finish();
  const output::RunState& state = report_.state;
  AcquireOutput::FailureText failure = output_.failure_text(state.outcome);
  return FrontReport{{state.outcome.exit_code, state.signal},
                     std::move(failure.text),
                     std::move(failure.short_text)};
}

// --- The process ---

namespace {

/// The script may leave its directory and unmount the disk. All other paths are absolute already.
void leave_working_directory(AcquireOptions& options) {
  if (options.token_file) {
    std::error_code failure;
    const auto path = std::filesystem::absolute(*options.token_file, failure);
    if (failure) return;
    options.token_file = path.string();
  }
  [[maybe_unused]] const int left = ::chdir("/");
}

}  // namespace

void hold_script(const SessionOptions& about, AcquireOptions& options, guard::Front& front,
                 guard::SignalGate& gate) {
  if (!options.background->process) options.owner.pid = ::getpid();
  guard::leave_job();
  try {
    leave_working_directory(options);
    Session session(about, options.servers, options.server_timeout);
    const auto link = std::make_shared<guard::FrontLink>(session.io().get_executor(),
                                                         session.clock(), session.interrupt(),
                                                         front.take_channel(), gate, front.pid());
    const pid_t job_group = ::getpgid(front.pid());
    const ScriptListeners listeners(session, options, job_group);
    link->start();
    Demands demands = demands_of(options);
    HoldReport report(session, options, demands.command);
    HeldScript script(session, options, *link, job_group, report);
    HolderProcess holder(session, options, std::move(demands), *link, report, script);
    session.run(holder.live());

    release_leftovers(about, options.servers, session);
    output::StandardError::of_process().finish();
  } catch (const std::exception& error) {
    // The front process notices that we have ended.
    about.console.error(escape_for_terminal(error.what()));
  }
  ::_exit(0);
}

}  // namespace redlock::commands
