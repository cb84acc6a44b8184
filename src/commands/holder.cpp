#include "commands/holder.hpp"

#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "commands/conclusion.hpp"
#include "commands/finish.hpp"
#include "commands/leftovers.hpp"
#include "commands/nested_runs.hpp"
#include "commands/nesting.hpp"
#include "commands/parent_links.hpp"
#include "commands/wait.hpp"
#include "engine/held_set.hpp"
#include "engine/inspect.hpp"
#include "guard/front_link.hpp"
#include "guard/supervisor.hpp"
#include "output/describe.hpp"
#include "output/json.hpp"
#include "output/printer.hpp"
#include "output/run_state.hpp"
#include "output/standard_error.hpp"
#include "proc/title.hpp"
#include "support/readable.hpp"
#include "support/spawn.hpp"
#include "support/text.hpp"

namespace redlock::commands {
namespace {

namespace event = output::event;
using output::CommandResult;

guard::StopReason reason_of(const StopRequest& request) {
  return request.newer ? guard::StopReason::replaced : guard::StopReason::request;
}

/// One `run` in the holder process, from the wait to the release. Reports are made from `state_`,
/// which records all that is known of the run, and from the events. Single-threaded.
class HolderProcess {
 public:
  /// All must outlive it.
  HolderProcess(Session& session, const RunOptions& options, guard::Front& front,
                guard::SignalGate& gate, const guard::InheritedSignals& inherited,
                const guard::Isolation& isolation)
      : session_(session),
        options_(options),
        front_(front),
        inherited_(inherited),
        isolation_(isolation),
        link_(std::make_shared<guard::FrontLink>(session.io().get_executor(), session.clock(),
                                                 front.take_channel(), gate, front.pid(),
                                                 front.job_group())),
        parents_(std::make_shared<ParentLinks>(
            session.io().get_executor(), session.clock(), session.interrupt(),
            [link = link_](int signal) { link->take_signal({signal}); })),
        changed_(session.clock().make_event()),
        began_(now()) {
    state_.outcome = output::outcome_of("run", options.resources, CommandResult::internal, {});
  }

  /// The whole life of the process, until the end was reported to the front process. Returns 0.
  asio::awaitable<int> live() {
    link_->start({[this](int signal) {
                    wait_ended_by_ = signal;
                    session_.interrupt().raise();
                  },
                  [this] { session_.interrupt().raise(); },
                  [this](int signal, guard::Reached reached) { pass_on(signal, reached); }},
                 front_.take_shield());

    if (options_.parent)
      spawn(session_.io().get_executor(), [this] { return watch_parent_process(); });

    for (bool done = false; !done;) {
      const bool granted = co_await wait();
      if (!granted) break;
      done = co_await run_command();
    }

    co_await count_if_skipped();
    const bool ran = !state_.leases.empty();
    if (!ran) report_not_acquired(session_, state_.outcome, state_.waited);

    const CloseMode mode = ran ? CloseMode::immediate : CloseMode::drain;
    co_await session_.server_set().close(mode);
    report();
    co_return 0;
  }

  [[nodiscard]] guard::FrontLink& link() noexcept { return *link_; }

 private:
  /// For --with-parent. The front process need not watch the parent, too: if this process hangs,
  /// the end of the lease stops the command.
  asio::awaitable<void> watch_parent_process() {
    Readable ended(session_.io().get_executor(), options_.parent.get());
    co_await ended.wait();
    parent_gone_ = true;
    if (state_.started_at) supervisor_->stop_for(guard::StopReason::parent_gone);
    session_.interrupt().raise();
  }

  // --- The wait ---

  /// Returns whether the locks are granted, and the command must run under them.
  asio::awaitable<bool> wait() {
    auto orders =
        co_await make_orders(options_, options_.stop.grace + options_.stop.margin, parents_.get());

    const bool needs_own = !option_for_own_leases().empty();
    if (needs_own && co_await has_parent_lease(session_.server_set(), orders))
      co_return refuse_parent_lease();

    auto granted = co_await wait_for(std::move(orders));
    granted_at_ = now();
    state_.waited = granted_at_ - began_;
    if (!granted) co_return give_up(granted.error());
    leases_ = std::move(*granted);
    if (needs_own && !are_our_own(leases_->leases())) {
      (void)co_await leases_->release(/*by_hand=*/false);
      co_return refuse_parent_lease();
    }
    const bool is_fresh = co_await skip_if_fresh();
    co_return !is_fresh;
  }

  /// Waits for the rest of --wait, whose time also passes while the job is paused.
  asio::awaitable<Result<std::shared_ptr<HeldSet>, WaitFailure>> wait_for(
      std::vector<AcquireOrder> orders) {
    for (AcquireOrder& order : orders) {
      order.once_per = options_.once_per;
      // A job that was paused and continued does not become a newer one.
      if (supersession_) order.supersession = supersession_;
      supersession_ = order.supersession;
    }

    WaitPolicy policy = options_.wait;
    if (policy.wait) policy.wait = std::max(Duration::zero(), *policy.wait - (now() - began_));
    // With --replace, the holder may be an enclosing run: stopping that would stop us, too.
    const bool insists_on_wait = options_.insists_on_wait && !options_.replaces;
    co_return co_await wait_for_locks(session_, std::move(orders), policy, insists_on_wait);
  }

  /// The option that requires leases of our own; empty: none does. An inherited lease is not
  /// released by this run, so the release could neither record the run nor keep the lock for the
  /// rest of --min-hold. A --min-hold from a general setting does not count, because it must not
  /// break nested runs.
  [[nodiscard]] std::string_view option_for_own_leases() const {
    if (options_.once_per) return "--once-per";
    if (options_.insists_on_min_hold) return "--min-hold";
    return {};
  }

  bool refuse_parent_lease() {
    const std::string_view option = option_for_own_leases();
    conclude(CommandResult::usage,
             needs_own_lease_text(option, fmt::format("give {} to that run", option)));
    return false;
  }

  bool give_up(const WaitFailure& failed) {
    if (failed.failure.why == AcquireDecision::interrupted) {
      conclude_interrupted();
    } else {
      state_.stop_request = failed.stop_request;
      output::Outcome outcome =
          outcome_of_wait("run", options_, failed, session_.server_set().size());
      outcome.message += "; the command was not run";
      conclude(std::move(outcome));
    }
    return false;
  }

  /// For --once-per. Returns whether the command must not run. A success counts only if it is
  /// recorded for each key, because a run records it for all of its keys.
  asio::awaitable<bool> skip_if_fresh() {
    if (!options_.once_per) co_return false;
    const auto& all = leases_->leases();
    const bool all_fresh =
        std::ranges::all_of(all, [](const Lease& lease) { return lease.fresh.has_value(); });
    if (!all_fresh) co_return false;

    const SetReleaseResult released = co_await leases_->release(/*by_hand=*/false);
    state_.released = released.result.decision == ReleaseDecision::released;
    state_.fresh = latest_success(all, now());
    session_.events().report(event::Fresh{*state_.fresh, state_.waited});
    conclude(outcome_of_fresh(*state_.fresh, options_));
    co_return true;
  }

  /// For --record-skips. If the servers do not record the skip, the run ends the same way.
  asio::awaitable<void> count_if_skipped() {
    const CommandResult result = state_.outcome.result;
    const bool is_skip = result == CommandResult::busy || result == CommandResult::fresh;
    if (!options_.records_skips || !is_skip) co_return;
    const std::string why(output::word_of(result));
    for (const Resource& resource : state_.outcome.resources)
      (void)co_await count_skip(session_.server_set(), resource, why);
  }

  // --- The command under the lock ---

  /// False if the job was paused before the command started, so that the lock was released and must
  /// be waited for again.
  asio::awaitable<bool> run_command() {
    state_.acquired_at = session_.clock().wall();
    supervisor_.emplace(session_.clock(), options_.stop, front_.page(), isolation_,
                        supervisor_events());
    nested_ = std::make_shared<NestedRuns>(session_.io().get_executor(), session_.clock(),
                                           leases_->leases(), [this] { changed_->notify(); });
    if (const auto forked = fork_command(); !forked) {
      conclude(forked.error());
      co_await release();
      co_return true;
    }

    // Ask the front process before the command starts, because it may be paused. Both guards must
    // watch by then.
    supervisor_->arm(leases_->deadline(), granted_at_);
    const bool may_start = co_await link_->may_start();
    if (session_.interrupt().raised()) {
      supervisor_->drop();
      conclude_interrupted();
      co_await release();
      co_return true;
    }
    if (!may_start) {
      supervisor_->drop();
      co_await release_while_paused();
      co_return false;
    }

    if (start_command()) {
      keep_leases();
      co_await finish();
    } else {
      co_await release();
    }
    co_return true;
  }

  /// Forks the command, which waits for its start.
  Result<void, guard::ExecFailure> fork_command() {
    guard::SpawnOptions spawn_options;
    spawn_options.environment =
        guard::environment_with(lease_variables(leases_->leases(), options_.servers));
    spawn_options.join_group = link_->job_group();
    nested_->listen();
    return supervisor_->prepare(options_.command, std::move(spawn_options), inherited_,
                                options_.on_stop);
  }

  /// While the job is paused before its start, others may have the lock.
  asio::awaitable<void> release_while_paused() {
    nested_->close();
    (void)co_await leases_->release(/*by_hand=*/false);
    session_.events().report(event::ReleasedWhilePaused{});
    co_await link_->until_continued();
  }

  /// False if it could not be started, or not in time; then the outcome is concluded.
  bool start_command() {
    state_.leases = leases_->leases();
    report_acquired(session_, state_.leases, state_.waited);
    // One of several leases may have been lost while the front process was asked.
    Result<bool, guard::ExecFailure> started = false;
    if (!leases_->lost()) started = supervisor_->start();
    if (!started) {
      conclude(started.error());
      return false;
    }
    if (!*started) {
      supervisor_->drop();
      conclude(
          CommandResult::lost,
          "the lease had expired, or nearly, before the command could start; it was not started");
      return false;
    }

    state_.started_at = session_.clock().wall();
    link_->command_started(*supervisor_, front_.page());
    front_.inherited().close(std::nullopt);
    return true;
  }

  /// Renews in the background. A loss is reported to the supervisor before the user, because no
  /// message may delay the stop signal.
  void keep_leases() {
    SetEvents events;
    events.extended = [this](bool after_trouble) {
      supervisor_->put_off_measuring(leases_->next_round());
      supervisor_->move_deadline(leases_->deadline());
      state_.trouble.clear();
      report_missing_votes();
      session_.events().report(event::Renewed{after_trouble});
    };
    events.in_trouble = [this](const Resource& resource, const LeaseInTrouble& trouble) {
      state_.trouble = output::faults_text(trouble.faults);
      if (trouble.first) session_.events().report(event::RenewalFailed{resource, trouble.faults});
    };
    events.ended = [this](const Resource& resource, const LeaseEnded& end) {
      state_.loss = output::Loss{resource, output::ended_text(end)};
      loss_reported_ = false;  // report it again: this reason is better than the failed renewals
      supervisor_->lease_is_lost();
      const auto stopped = supervisor_->stopped();
      if (stopped && guard::keeps_lease(*stopped)) report_loss();
      changed_->notify();
    };
    events.stop_requested = [this](const StopRequested& asked) {
      state_.stop_request = asked.request;
      supervisor_->stop_for(reason_of(asked.request));
      changed_->notify();
    };
    leases_->keep(std::move(events));
  }

  guard::SupervisorEvents supervisor_events() {
    guard::SupervisorEvents events;
    events.ended = [this](bool got_stop_signal) { link_->command_ended(got_stop_signal); };
    events.stopping = [this](guard::StopReason why, const guard::Delay& delay) {
      if (why != guard::StopReason::lease) return report_stopping(why);
      if (!state_.loss)
        state_.loss = output::Loss{std::nullopt, reason_for_stop(state_.trouble, delay)};
      report_loss();
      // With --on-lost warn the command runs on.
      if (options_.stop.on_lost != guard::OnLost::warn) report_stopping(why);
    };
    events.strained = [this](const StopCost& cost, Duration needed) {
      session_.events().report(event::Strained{cost, needed, options_.ttl});
    };
    events.awaiting = [this](const std::vector<pid_t>& pids) {
      session_.events().report(event::Awaiting{pids});
    };
    events.unkillable = [this](const std::vector<pid_t>& pids) {
      session_.events().report(event::Unkillable{pids});
    };
    return events;
  }

  void report_stopping(guard::StopReason why) {
    std::optional<StopRequest> request;
    if (why == guard::StopReason::request || why == guard::StopReason::replaced)
      request = state_.stop_request;
    session_.events().report(event::Stopping{why, options_.stop.max_hold, std::move(request)});
  }

  /// Reports the loss once. Call it only after the stop signal was sent.
  void report_loss() {
    if (!std::exchange(loss_reported_, true))
      session_.events().report(event::Lost{state_.loss->resource, state_.loss->reason});
  }

  /// A quorum suffices, but while servers are missing it may soon be lost. Reports each change
  /// once.
  void report_missing_votes() {
    const ServerSet& servers = session_.server_set();
    std::vector<ServerFault> faults = servers.faults();
    std::string text = output::missing_votes_text(faults, servers.size());
    if (std::exchange(missing_votes_, text) != text)
      session_.events().report(event::VotesChanged{std::move(faults), servers.size()});
  }

  /// After the end of the command, passes signals on to its nested runs, the only processes left
  /// that we are responsible for.
  void pass_on(int signal, guard::Reached reached) {
    if (outlasting_ && reached != guard::Reached::everything) {
      const bool reached_job = reached == guard::Reached::job;
      nested_->pass_on(signal, reached_job ? link_->job_group().value_or(0) : 0);
    }
  }

  // --- The end ---

  /// Waits for the end of the command, and of the descendants that must end with it, and releases
  /// the lock.
  asio::awaitable<void> finish() {
    guard::CommandEnd end = co_await supervisor_->finish();
    state_.end = std::move(end);

    // By this name, processes that the command left running see that we no longer wait for them
    // (is_enclosing_run()).
    proc::set_name(proc::releaser_title);
    ended_at_ = now();
    state_.held = *ended_at_ - granted_at_;
    state_.ended_at = session_.clock().wall();

    if (state_.loss) report_loss();
    session_.events().report(event::Ended{state_.command_exit(), state_.command_signal(),
                                          state_.held, state_.end->left});

    bool all_ended = !state_.end->unkillable;
    if (all_ended) all_ended = co_await outlast_nested_runs();
    if (!all_ended || !state_.end->hook_failure.empty()) {
      // Do not release the lock: it must protect what still runs for as long as possible.
      nested_->close();
      leases_->keep({});  // keep renewing, but report no more events
      state_.left = state_.end->left;
      conclude(all_ended ? outcome_of_failed_hook(state_, options_)
                         : outcome_of_unkillable(state_, options_));
      co_return;
    }

    if (!state_.end->swept.empty()) report_left(state_.end->swept, /*killed=*/true);
    conclude(outcome_of_end(state_, options_));
    state_.signal = signal_of_end(state_);
    co_await release(left_of_min_hold());

    std::vector<pid_t> left = state_.end->left;
    if (!left.empty()) co_await supervisor_->settle(left);
    state_.left = std::move(left);
    if (!state_.left.empty()) report_left(state_.left, /*killed=*/false);
  }

  /// Waits for nested runs that the command left behind, because they may use our lease, and would
  /// notice its end too late, at their next check. False if they had to be stopped and some process
  /// could not be killed.
  asio::awaitable<bool> outlast_nested_runs() {
    nested_->close();
    if (nested_->empty() || leases_->lost()) co_return true;
    session_.events().report(event::NestedRunsLive{nested_->holders()});
    outlasting_ = true;

    const Interrupt::Listener interrupted(session_.interrupt(), *changed_);
    while (nested_runs_may_go_on()) co_await changed_->wait_until(supervisor_->hold_until());
    if (link_->killed_guard()) co_return co_await supervisor_->kill_rest();

    if (!nested_->empty() && !leases_->lost()) {
      const auto why = reason_to_stop_nested_runs();
      state_.end->stopped = why;
      report_stopping(why);
      const bool stopped = co_await supervisor_->stop_rest();
      if (state_.loss) {
        state_.end->stopped = guard::StopReason::lease;
        report_loss();
      }
      co_return stopped;
    }
    co_return true;
  }

  [[nodiscard]] bool nested_runs_may_go_on() const {
    return !nested_->empty() && !leases_->lost() && !link_->killed_guard() && !parent_gone_ &&
           !state_.stop_request && now() < supervisor_->hold_until();
  }

  [[nodiscard]] guard::StopReason reason_to_stop_nested_runs() const {
    if (parent_gone_) return guard::StopReason::parent_gone;
    return state_.stop_request ? reason_of(*state_.stop_request) : guard::StopReason::max_hold;
  }

  [[nodiscard]] Duration left_of_min_hold() const {
    return state_.is_lost() ? Duration::zero()
                            : std::max(Duration::zero(), options_.min_hold - (now() - granted_at_));
  }

  /// Releases the leases, or leaves them to expire after `expire_in`. If one turns out to be no
  /// longer ours, it was lost while the command ran.
  asio::awaitable<void> release(Duration expire_in = Duration::zero()) {
    nested_->close();
    std::optional<RunRecord> record;
    if (ended_at_) record = run_record(state_, options_, *ended_at_);
    const auto owner = finished_owner(state_, options_, expire_in);
    SetReleaseResult released =
        co_await leases_->release(/*by_hand=*/false, expire_in, owner, std::move(record));

    const bool was_lost = state_.is_lost();
    const bool turned_out_lost = conclude_release(state_, leases_->leases(), released);
    if (!state_.leases.empty()) {
      const bool is_ours = has_own(leases_->leases());
      session_.events().report(event::Released{state_.released, !is_ours, state_.held,
                                               is_ours ? expire_in : Duration::zero()});
    }

    if (turned_out_lost) co_return report_conclusion();
    if (was_lost) co_return;
    if (released.result.decision == ReleaseDecision::unavailable)
      session_.events().report(
          event::ReleasePending{options_.ttl, std::move(released.result.faults)});
    if (!released.recorded && options_.once_per && state_.command_exit() == 0)
      session_.events().report(event::NotRecorded{*options_.once_per});
  }

  /// Processes left running are expected if --descendants was given, or if the lease is inherited,
  /// so that they run on under it.
  void report_left(const std::vector<pid_t>& pids, bool killed) {
    const bool is_own = has_own(state_.leases);
    session_.events().report(
        event::LeftRunning{pids, killed, options_.sets_descendants || !is_own, is_own && !killed});
  }

  // --- How it ends ---

  void conclude(output::Outcome outcome) {
    state_.outcome = std::move(outcome);
    report_conclusion();
  }

  void conclude(CommandResult result, std::string message) {
    conclude(output::outcome_of("run", options_.resources, result, std::move(message)));
  }

  void conclude(const guard::ExecFailure& failure) {
    output::Outcome outcome =
        output::outcome_of("run", options_.resources, CommandResult::not_started, failure.text);
    outcome.exit_code = failure.exit_code;
    conclude(std::move(outcome));
  }

  /// Concludes a run that was interrupted before the command started: by a stop request, the death
  /// of another guard, a signal, or the end of the process that started us.
  void conclude_interrupted() {
    if (leases_ && leases_->stop_requested()) {
      state_.stop_request = leases_->stop_requested()->request;
      output::Outcome outcome = outcome_of_early_stop("run", options_, *state_.stop_request);
      outcome.message += "; the command was not run";
      return conclude(std::move(outcome));
    }
    if (const auto guard = link_->killed_guard(); guard && wait_ended_by_ == 0)
      return conclude(outcome_of_killed_guard(*guard, options_));

    output::Outcome outcome =
        output::outcome_of("run", options_.resources, CommandResult::interrupted, {});
    if (wait_ended_by_ == 0) {
      outcome.result = CommandResult::parent_gone;
      outcome.message = "the process that started redlock-cli has ended; the command was not run";
    }
    // SIGHUP is what a terminal sends when it is closed.
    state_.signal = wait_ended_by_ != 0 ? wait_ended_by_ : SIGHUP;
    outcome.exit_code = exit_code_of({0, state_.signal});
    conclude(std::move(outcome));
  }

  void report_conclusion() { session_.events().report(event::Concluded{state_.outcome}); }

  /// Reports to the front process how to end, and what to write to --status-fd.
  void report() {
    if (state_.released) report_missing_votes();
    const Finish finish{state_.outcome.exit_code, state_.signal};
    state_.outcome.exit_code = exit_code_of(finish);
    std::string text;
    if (session_.json() || options_.status_fd) text = output::run_json(state_) + "\n";
    if (session_.json()) output::StandardError::of_process().write(LOG_ERR, text);

    if (link_->report(finish.exit_code, finish.signal, std::move(text))) return;
    // A long text is sent as a file, which may have failed; if the front process is gone, the short
    // report fails, too.
    if (!link_->report(finish.exit_code, finish.signal, {})) return;
    session_.console().error(
        "cannot pass on the result for --json or --status-fd: no memory, descriptors or file size "
        "(ulimit -f) left");
  }

  [[nodiscard]] Instant now() const { return session_.clock().now(); }

  Session& session_;
  const RunOptions& options_;
  guard::Front& front_;
  const guard::InheritedSignals& inherited_;
  const guard::Isolation& isolation_;
  output::RunState state_;
  std::shared_ptr<guard::FrontLink> link_;
  std::optional<guard::Supervisor> supervisor_;  ///< of the current or last command
  std::shared_ptr<ParentLinks> parents_;         ///< to parent runs
  std::shared_ptr<HeldSet> leases_;              ///< the current or last ones
  std::shared_ptr<NestedRuns> nested_;           ///< nested runs below the command
  std::unique_ptr<Event> changed_;               ///< notified of what ends outlast_nested_runs()
  std::shared_ptr<Supersession> supersession_;   ///< the same for each wait; null before the first
  Instant began_;
  Instant granted_at_;               ///< when the wait ended, which is when held times begin
  std::optional<Instant> ended_at_;  ///< when the command ended; nullopt: it has not
  int wait_ended_by_ = 0;            ///< the signal that ended the wait; 0: none
  bool parent_gone_ = false;         ///< --with-parent: the process that started us has ended
  bool outlasting_ = false;          ///< waiting for nested runs, which signals are passed on to
  bool loss_reported_ = false;
  std::string missing_votes_;  ///< as last reported
};

}  // namespace

void hold(const SessionOptions& about, const RunOptions& options, guard::Front& front,
          guard::SignalGate& gate, const guard::InheritedSignals& inherited,
          const guard::Isolation& isolation, output::EventWriter* events) {
  guard::leave_job();
  try {
    Session session(about, options.servers, options.server_timeout);
    output::Printer printer(session.console(), session.clock(), options.resources,
                            front.job_group().value_or(0), session.json(),
                            /*reports_end=*/!session.json());
    session.events().add(printer);
    if (events != nullptr) session.events().add(*events);
    HolderProcess holder(session, options, front, gate, inherited, isolation);
    if (options.notifies_service) {
      printer.notify([&link = holder.link()](const std::string& name, std::string value) {
        link.notify_service(name, std::move(value));
      });
    }
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
