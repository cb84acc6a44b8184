#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "child/ancestry.hpp"
#include "child/descendants.hpp"
#include "child/descriptors.hpp"
#include "child/front_link.hpp"
#include "child/supervisor.hpp"
#include "child/title.hpp"
#include "run/finish.hpp"
#include "run/nesting.hpp"
#include "run/holder.hpp"
#include "run/lease_file.hpp"
#include "run/leftovers.hpp"
#include "output/outcome.hpp"
#include "run/options.hpp"
#include "run/session.hpp"
#include "run/wait.hpp"
#include "output/describe.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"

namespace redlock::run {
namespace {

/// What the command finds in its environment.
std::vector<child::Variable> lease_variables(const std::vector<Lease>& leases, const ServerOptions& servers) {
  const LeaseVariables values = variables_of(handle_of(leases, fingerprint(servers)));
  return {{"REDLOCK_KEY", values.key},     {"REDLOCK_TOKEN", values.token}, {"REDLOCK_FENCE", values.fence},
          {"REDLOCK_LEASE", values.lease}, {"REDLOCK_SLOT", values.slot},   {"REDLOCK_HELD", held_variable(leases, servers)}};
}

/// Between two looks whether nested runs have ended: they need not be our children.
constexpr Milliseconds nested_interval{50};

/// How long front may take to say that the command may start. One that is stopped (^Z) says nothing; the lock is given back then.
constexpr Milliseconds go_patience{500};

/// A shorter delay of our own timers is no reason to lose a lease.
constexpr Milliseconds min_told_delay{100};

constexpr int mebibyte_shift = 20;

/// How long one who signals all processes of the job, one by one, may take from front to us.
constexpr Milliseconds sweep_time{10};

/// The front process of a nested run's holder; 0 when that has ended.
pid_t front_of(pid_t holder) {
  const pid_t parent = child::parent_of(holder);
  return child::name_of(parent) == "lock-shield" ? child::parent_of(parent) : parent;
}

/// What those that keep the leases in the background and the run in front share; they may still be waiting for an answer when the run is
/// over.
struct Tenancy {
  Tenancy(std::shared_ptr<HeldSet> set, const Clock& clock, const child::StopPlan& stop, child::SharedPage& page,
          const child::Isolation& isolation, child::SupervisorEvents events)
      : leases(std::move(set)), supervisor(clock, stop, page, isolation, std::move(events)) {}

  std::shared_ptr<HeldSet> leases;
  child::Supervisor supervisor;
  std::string trouble;  ///< why the last round failed; empty when it did not
  bool started = false;
  bool over = false;
};

/// One `run` behind front: wait, start, renew while it runs, release.
class Holder {
 public:
  Holder(Session& session, const RunOptions& options, HolderParts parts)
      : session_(session),
        options_(options),
        page_(parts.page),
        inherited_(parts.inherited),
        isolation_(parts.isolation),
        front_(parts.front),
        link_(std::make_shared<child::FrontLink>(session.io().get_executor(), session.clock(), std::move(parts.channel), parts.gate)),
        key_(output::keys_text(options.resources)) {
    if (parts.job_group != 0) job_group_ = parts.job_group;
    report_.outcome = output::outcome_of("run", options.resources, ExitCode::internal, {});
  }

  asio::awaitable<int> live() {
    link_->start({[this](int signal) { on_signal(signal); }, [this] { on_child(); }, [this] { on_front_gone(); }});
    const Instant began = session_.clock().now();
    std::optional<Finish> finish;
    while (!finish) {
      auto leases = co_await wait_for_locks(session_, orders(options_, options_.stop.grace + options_.stop.margin, /*stays=*/true),
                                            remaining_policy(began), job_group_.value_or(0));
      report_.waited = session_.clock().now() - began;
      if (leases) {
        finish = co_await run_under(*leases);
      } else {
        finish = fail(leases.error());
      }
    }
    co_await session_.electorate().close(report_.leases.empty() ? Farewell::thorough : Farewell::brief);
    if (report_.released) tell_missing_votes();
    tell(*finish);
    co_return 0;
  }

 private:
  /// What is left of the wait: it goes on while the job is stopped.
  [[nodiscard]] WaitPolicy remaining_policy(Instant began) const {
    WaitPolicy policy = options_.wait;
    if (policy.wait) policy.wait = std::max(Duration::zero(), *policy.wait - (session_.clock().now() - began));
    return policy;
  }

  void on_signal(int signal) {
    if (tenancy_ && tenancy_->started) {
      return spawn(session_.io().get_executor(), [this, signal] { return pass_on(signal); });
    }
    if (!child::ends_a_wait(signal)) return;
    ended_by_ = signal;
    session_.interrupt().raise();
  }

  /// What we got ourselves, too, somebody sends to every process of the job, and the command gets
  /// it as well.
  asio::awaitable<void> pass_on(int signal) {
    // In a job, front has waited as long for its witness.
    if (!job_group_) co_await sleep_until(session_.clock(), session_.clock().now() + sweep_time);
    if (link_->got_ourselves(signal)) co_return;
    for (const pid_t pid : nested_) {
      // Of the command nothing else is ours to end.
      if (const pid_t front = front_of(pid); front > 1) ::kill(front, signal);
    }
    tenancy_->supervisor.pass_on(signal);
  }

  void on_child() {
    if (!tenancy_) return;
    if (job_group_) follow_stops();
    tenancy_->supervisor.on_child();
  }

  /// Front stops when the command has stopped, and goes on when somebody lets the command alone go on.
  void follow_stops() {
    while (const auto change = tenancy_->supervisor.stop_change()) {
      page_.stopped_group = change->group;  // first: front looks when its own stop is under way
      if (change->signal != 0) {
        link_->tell_stopped(change->signal);
      } else if (!link_->gone()) {
        ::kill(front_, SIGCONT);
      }
    }
  }

  void on_front_gone() {
    if (tenancy_ && tenancy_->started) tenancy_->supervisor.front_is_gone();
    session_.interrupt().raise();
  }

  Finish fail(const SetFailure& failed) {
    const AttemptFailure& failure = failed.failure;
    if (failure.why == AttemptFailure::Why::interrupted) return interrupted();
    const output::FailureMeaning meaning = output::meaning_of(failure.why);
    const bool busy = meaning.code == ExitCode::busy;
    conclude(meaning.code,
             output::failure_text(failed.resource, failure, session_.electorate().size()) + (busy ? end_of_wait_text(options_.wait) : ""),
             {failed.resource});
    report_.outcome.holder = failure.holder;
    report_.outcome.faults = failure.faults;
    if (busy) report_.outcome.exit_code = options_.conflict_exit_code;
    say(busy);
    return Finish{report_.outcome.exit_code};
  }

  Finish interrupted() {
    report_.outcome.result = "interrupted";
    return Finish{0, ended_by_};
  }

  /// Nothing: the job was stopped, so the lock was given back; wait again.
  asio::awaitable<std::optional<Finish>> run_under(std::shared_ptr<HeldSet> leases) {
    const auto tenancy = std::make_shared<Tenancy>(leases, session_.clock(), options_.stop, page_, isolation_, supervisor_events());
    tenancy_ = tenancy;
    child::Supervisor& supervisor = tenancy->supervisor;
    child::SpawnOptions spawn_options;
    spawn_options.environment = child::environment_with(lease_variables(leases->leases(), options_.servers));
    spawn_options.join_group = job_group_;
    if (const auto ready = supervisor.prepare(options_.command, spawn_options, inherited_); !ready) {
      const Finish finish = not_started(ready.error());
      co_return co_await release(*tenancy, finish);
    }
    supervisor.arm(leases->deadline());
    const bool may_start = co_await link_->may_start(session_.clock().now() + go_patience);
    if (session_.interrupt().raised()) {
      supervisor.drop();
      co_return co_await release(*tenancy, interrupted());
    }
    if (!may_start) {
      supervisor.drop();
      co_await give_back(*tenancy);
      co_return std::nullopt;
    }
    report_.leases = leases->leases();
    const Instant granted = session_.clock().now();
    // One of several may have been lost while front was asked.
    auto started = leases->lost() ? Result<bool, child::ExecFailure>(false) : supervisor.start();
    if (!started) co_return co_await release(*tenancy, not_started(started.error()));
    if (!*started) {
      supervisor.drop();
      conclude(ExitCode::lost, "the lease was over, or nearly, before the command could start; it was not started");
      say(/*busy=*/false);
      co_return co_await release(*tenancy, Finish{report_.outcome.exit_code});
    }
    tenancy->started = true;
    link_->forget_signals();  // the command was not there to get them
    link_->tell_started();
    child::close_inherited(std::nullopt);
    keep(tenancy);
    const child::Ending ending = co_await supervisor.finish();
    report_.held = session_.clock().now() - granted;
    report_.left.assign(ending.left.begin(), ending.left.end());
    report_.late = ending.late;
    if (ending.unconfirmed) co_return unconfirmed(*tenancy);
    co_await outlast_nested_runs(*tenancy);
    const Finish finish = finish_of(ending);
    const Duration keep =
        ending.lease_gone ? Duration::zero() : std::max(Duration::zero(), options_.min_hold - (session_.clock().now() - granted));
    co_return co_await release(*tenancy, finish, keep);
  }

  static bool has_tenure(const HeldSet& set, Tenure tenure) {
    return std::any_of(set.leases().begin(), set.leases().end(), [tenure](const Lease& lease) { return lease.tenure == tenure; });
  }

  /// Runs that the command left behind may live on our lease: they notice its end only when they look, too late. Under the name of one
  /// that ends we look once more: who comes later does not borrow from us (see enclose()).
  asio::awaitable<void> outlast_nested_runs(Tenancy& tenancy) {
    const std::string own_name = child::name_of(::getpid());
    bool told = false;
    for (;;) {
      child::set_name(ending_holder);
      nested_ = child::living_descendants({::getpid()});
      std::erase_if(nested_, [](pid_t pid) { return child::name_of(pid) != nested_holder; });
      if (nested_.empty() || tenancy.leases->lost()) co_return;
      child::set_name(own_name);
      if (!told) {
        session_.console().notice(
            fmt::format("{}: the lock is kept for runs within this one that still run: {}", key_, fmt::join(nested_, " ")));
      }
      told = true;
      if (link_->gone()) {
        (void)co_await tenancy.supervisor.kill_rest();
        co_return;
      }
      co_await sleep_until(session_.clock(), session_.clock().now() + nested_interval);
    }
  }

  /// The job is stopped: others may have the lock until it goes on.
  asio::awaitable<void> give_back(Tenancy& tenancy) {
    tenancy.over = true;
    (void)co_await tenancy.leases->release(/*by_hand=*/false);
    session_.console().detail(fmt::format("{}: the job is stopped, so it gave up its turn", key_));
    co_await link_->until_continued();
    link_->tell_waiting();
  }

  Finish not_started(const child::ExecFailure& failure) {
    report_.outcome = output::outcome_of("run", options_.resources, ExitCode::os_error, failure.text);
    report_.outcome.exit_code = failure.exit_code;
    report_.outcome.result = "not_started";
    say(/*busy=*/false);
    return Finish{failure.exit_code};
  }

  /// Something of the command may still run, so the lock must not be given to others a moment sooner than it is taken from us.
  Finish unconfirmed(Tenancy& tenancy) {
    tenancy.over = true;
    conclude(ExitCode::unconfirmed, output::unsafe_text(/*dead=*/false, report_.left, report_.late));
    say(/*busy=*/false);
    return Finish{report_.outcome.exit_code};
  }

  /// Renews in the background, and tells the supervisor what it must know.
  void keep(const std::shared_ptr<Tenancy>& tenancy) {
    SetEvents events;
    events.extended = [this, tenancy](bool after_trouble) {
      if (tenancy->over) return;
      tenancy->supervisor.move_deadline(tenancy->leases->deadline());
      tenancy->trouble.clear();
      tell_missing_votes();
      session_.console().debug(fmt::format("{}: {}", key_, after_trouble ? "renewed again" : "extended"));
    };
    events.in_trouble = [this, tenancy](const Resource& resource, const LeaseInTrouble& trouble) {
      if (tenancy->over) return;
      // An outage that is shorter than the lease is nobody's business; a longer one is told when the command is stopped.
      tenancy->trouble = output::faults_text(trouble.faults);
      if (trouble.first)
        session_.console().detail(fmt::format("{}: cannot renew, trying on: {}", output::key_text(resource), tenancy->trouble));
    };
    events.ended = [this, tenancy](const Resource& resource, const LeaseEnded& end) {
      if (tenancy->over) return;
      // Told behind the stop signal: to write can take as long as a terminal is held (^S).
      report_.reason = output::ended_text(end);
      lost_ = resource;
      tenancy->supervisor.lease_is_over();
    };
    tenancy->leases->keep(std::move(events));
  }

  child::SupervisorEvents supervisor_events() {
    child::SupervisorEvents events;
    events.ended = [this](bool stopped_by_us) {
      const bool was_stopped = page_.stopped_group.exchange(0) != 0;
      if (job_group_) link_->tell_ended();
      // Killed while it was stopped: whoever waits for us must learn it. What we stopped ourselves is told when the job goes on.
      if (was_stopped && !stopped_by_us && !link_->gone()) ::kill(front_, SIGCONT);
    };
    events.stopping = [this](const child::Delay& delay) { tell_reason(delay); };
    events.strained = [this](const StopCost& cost, Duration needed) {
      session_.console().notice(
          fmt::format("{}: to stop the command's {} processes ({} MiB) may take {}, more than --ttl {} leaves; use a longer --ttl",
                      key_, cost.processes, cost.private_bytes >> mebibyte_shift, format_duration(needed),
                      format_duration(options_.ttl.length())));
    };
    events.unkillable = [this](const std::vector<pid_t>& pids) {
      session_.console().error(fmt::format("{}: cannot be killed; the lock is kept as long as it can be: {}", key_, fmt::join(pids, " ")));
    };
    return events;
  }

  /// Why the command is being stopped: the lease was lost, it could not be renewed, or we did not run.
  void tell_reason(const child::Delay& delay) {
    if (lost_) return tell_loss();
    const bool delayed = delay.length >= min_told_delay;
    if (delayed) report_.reason = output::delay_text(delay.length, delay.suspended);
    if (!tenancy_->trouble.empty()) {
      report_.reason = "cannot renew: " + tenancy_->trouble + (delayed ? "; " + report_.reason : "");
    }
    if (report_.reason.empty()) report_.reason = "cannot renew: no answer yet from a quorum of servers";
    session_.console().error(fmt::format("{}: {}", key_, report_.reason));
  }

  void tell_loss() {
    session_.console().error(fmt::format("{}: lost: {}", output::key_text(*lost_), report_.reason));
    lost_.reset();
  }

  /// What the command's end means for us.
  Finish finish_of(const child::Ending& ending) {
    if (lost_) tell_loss();
    if (WIFEXITED(ending.status)) report_.command_exit = WEXITSTATUS(ending.status);
    if (WIFSIGNALED(ending.status)) report_.command_signal = WTERMSIG(ending.status);
    if (!ending.left.empty())
      session_.console().notice(fmt::format("{}: processes that the command left running: {}", key_, fmt::join(ending.left, " ")));
    if (!ending.swept.empty())
      session_.console().notice(fmt::format("{}: processes that the command left running, killed with its pid namespace: {}", key_,
                                            fmt::join(ending.swept, " ")));
    if (ending.late > Duration::zero()) {
      conclude(ExitCode::unconfirmed, output::unsafe_text(/*dead=*/true, {}, ending.late));
      say(/*busy=*/false);
      return Finish{report_.outcome.exit_code};
    }
    if (ending.lease_gone) {
      conclude(ExitCode::lost,
               options_.stop.on_lost == child::OnLost::warn ? "the command ran on without the lock" : "the command was stopped");
      say(/*busy=*/false);
      return Finish{report_.outcome.exit_code};
    }
    conclude(ExitCode::done, {});
    report_.outcome.result = "released";
    if (report_.command_signal) return Finish{0, *report_.command_signal};
    return Finish{*report_.command_exit};
  }

  /// A quorum is enough, but one that is short of servers may soon be none. Once for each state.
  void tell_missing_votes() {
    std::string text = output::missing_votes_text(session_.electorate().faults(), session_.electorate().size());
    if (text == missing_votes_) return;
    missing_votes_ = std::move(text);
    session_.console().detail(fmt::format("{}: {}", key_, missing_votes_.empty() ? "all servers vote again" : missing_votes_));
  }

  /// What others read of us for as long as the lease is kept behind the command's end.
  [[nodiscard]] std::optional<Owner> finished_owner(Duration keep) const {
    if (keep <= Duration::zero()) return std::nullopt;
    Owner owner = options_.owner;
    owner.renewed_for = Duration::zero();
    owner.finished = Finished{keep, report_.command_exit, report_.command_signal};
    return owner;
  }

  /// Gives the lease back, or leaves it to end after `keep`; one that turns out not to be ours any more was lost while the command ran.
  asio::awaitable<Finish> release(Tenancy& tenancy, Finish finish, Duration keep = Duration::zero()) {
    tenancy.over = true;
    const std::optional<Owner> finished = finished_owner(keep);
    const SetReleaseResult released = co_await tenancy.leases->release(/*by_hand=*/false, keep, finished);
    const ReleaseResult& result = released.result;
    const bool ours = has_tenure(*tenancy.leases, Tenure::own);
    report_.released = ours && result.decision == ReleaseDecision::released;
    if (!ours && report_.outcome.result == "released") report_.outcome.result = "enclosed";
    if (!report_.released && report_.outcome.result == "released") report_.outcome.result = "unreleased";
    const bool known_lost = report_.outcome.exit_code == to_int(ExitCode::lost) ||
                            report_.outcome.exit_code == to_int(ExitCode::unconfirmed);
    if (result.decision == ReleaseDecision::not_ours && !known_lost) {
      conclude(ExitCode::lost, "lost while the command ran: " + output::not_ours_text(result.not_ours), {released.resource});
      if (result.not_ours) report_.outcome.holder = result.not_ours->holder;
      say(/*busy=*/false);
      co_return Finish{report_.outcome.exit_code};
    }
    if (result.decision == ReleaseDecision::unavailable && !known_lost) {
      session_.console().notice(
          fmt::format("{}: no quorum confirmed the release yet; it is repeated in the background until what is left expires, within {}; {}",
                      key_, format_duration(options_.ttl.length()), output::faults_text(result.faults)));
    }
    co_return finish;
  }

  void conclude(ExitCode code, std::string message) { conclude(code, std::move(message), options_.resources); }

  /// About one of the keys.
  void conclude(ExitCode code, std::string message, std::vector<Resource> resources) {
    report_.outcome = output::outcome_of("run", std::move(resources), code, std::move(message));
  }

  void say(bool busy) const {
    const std::string line = fmt::format("{}: {}", output::keys_text(report_.outcome.resources), report_.outcome.message);
    if (session_.json()) return;  // the report says it
    busy ? session_.console().notice(line) : session_.console().error(line);
  }

  /// The last word to front, which exits as we say and writes the report to --status-fd.
  void tell(const Finish& finish) {
    report_.outcome.exit_code = finish.signal != 0 ? signal_exit_base + finish.signal : finish.exit_code;
    const std::string line = output::run_json(report_) + "\n";
    if (session_.json()) output::write_all(STDERR_FILENO, line);
    link_->report(finish.signal != 0 ? -finish.signal : finish.exit_code, line);
  }

  Session& session_;
  const RunOptions& options_;
  child::SharedPage& page_;
  const child::InheritedSignals& inherited_;
  const child::Isolation& isolation_;
  pid_t front_;
  std::shared_ptr<child::FrontLink> link_;
  std::shared_ptr<Tenancy> tenancy_;
  std::optional<pid_t> job_group_;
  std::string key_;
  std::string missing_votes_;  ///< as it was told last
  output::RunReport report_;
  std::optional<Resource> lost_;  ///< which of the keys, until it is told
  std::vector<pid_t> nested_;     ///< holders that live on our lease, once the command has ended
  int ended_by_ = 0;
};

}  // namespace

void hold(const SessionOptions& about, const RunOptions& options, HolderParts parts) {
  ::setpgid(0, 0);
  child::ignore_all();
  const child::Isolation& isolation = parts.isolation;
  try {
    Session session(about, options.servers, options.server_timeout);
    Holder holder(session, options, std::move(parts));
    session.run(holder.live());
    isolation.clear_away();
    clear_away_behind(about, options.servers, session);
  } catch (const std::exception& error) {
    // Front learns it from our end.
    about.console.error(escape_for_terminal(error.what()));
    ::_exit(to_int(ExitCode::internal));
  }
  ::_exit(0);
}

}  // namespace redlock::run
