#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child/descriptors.hpp"
#include "child/front_link.hpp"
#include "child/supervisor.hpp"
#include "cli/commands.hpp"
#include "cli/holder.hpp"
#include "cli/lease_file.hpp"
#include "cli/outcome.hpp"
#include "cli/run_options.hpp"
#include "cli/session.hpp"
#include "cli/waiting.hpp"
#include "core/lease_handle.hpp"
#include "engine/held_lease.hpp"
#include "engine/lease_keeper.hpp"
#include "output/describe.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

/// What the command finds in its environment.
std::vector<child::Variable> lease_variables(const Lease& lease, const ServerOptions& servers) {
  const LeaseVariables values = variables_of(LeaseHandle{lease.resource, lease.token, lease.fence, fingerprint(servers)});
  return {{"REDLOCK_KEY", values.key}, {"REDLOCK_TOKEN", values.token}, {"REDLOCK_FENCE", values.fence}, {"REDLOCK_LEASE", values.lease}};
}

/// How long front may take to say that the command may start. One that is stopped (^Z) says nothing; the lock is given back then.
constexpr Milliseconds go_patience{500};

/// What the keeper in the background and the run in front share; the keeper may still be waiting for an answer when the run is over.
struct Tenancy {
  Tenancy(Electorate& electorate, const Lease& lease, const Clock& clock, const child::StopPlan& stop, child::SharedPage& page,
          const child::Isolation& isolation, child::SupervisorEvents events)
      : held(electorate, lease.resource, lease.token, lease.fence),
        keeper(electorate, held, lease),
        supervisor(clock, stop, page, isolation, std::move(events)) {}

  HeldLease held;
  LeaseKeeper keeper;
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
        front_(::getppid()),
        link_(std::make_shared<child::FrontLink>(session.io().get_executor(), session.clock(), std::move(parts.channel), parts.gate)),
        key_(output::key_text(options.resource)) {
    if (parts.job_group != 0) job_group_ = parts.job_group;
    report_.outcome = outcome_of("run", options.resource, ExitCode::internal, {});
  }

  asio::awaitable<int> live() {
    link_->start({[this](int signal) { on_signal(signal); }, [this] { on_child(); }, [this] { on_front_gone(); }});
    const Instant began = session_.clock().now();
    std::optional<Finish> finish;
    while (!finish) {
      const AcquireOrder what = order();
      auto lease = co_await wait_for_lock(session_, what, remaining_policy(began));
      report_.waited = session_.clock().now() - began;
      if (lease) {
        finish = co_await run_under(*lease);
      } else {
        finish = fail(lease.error());
      }
      if (!lease) break;
    }
    co_await session_.electorate().close(/*drain=*/!report_.fence.has_value());
    tell(*finish);
    co_return 0;
  }

 private:
  [[nodiscard]] AcquireOrder order() const {
    return {options_.resource, options_.ttl, options_.owner, options_.stop.grace + options_.stop.margin};
  }

  /// What is left of the wait: it goes on while the job is stopped.
  [[nodiscard]] WaitPolicy remaining_policy(Instant began) const {
    WaitPolicy policy = options_.wait;
    if (policy.wait) policy.wait = std::max(Duration::zero(), *policy.wait - (session_.clock().now() - began));
    return policy;
  }

  void on_signal(int signal) {
    if (tenancy_ && tenancy_->started) return tenancy_->supervisor.pass_on(signal);
    if (!child::ends_a_wait(signal)) return;
    ended_by_ = signal;
    session_.interrupt().raise();
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
      } else if (::getppid() == front_) {
        ::kill(front_, SIGCONT);
      }
    }
  }

  void on_front_gone() {
    if (tenancy_ && tenancy_->started) tenancy_->supervisor.front_is_gone();
    session_.interrupt().raise();
  }

  Finish fail(const AttemptFailure& failure) {
    if (failure.why == AttemptFailure::Why::interrupted) return interrupted();
    const FailureMeaning meaning = meaning_of(failure.why);
    const bool busy = meaning.code == ExitCode::busy;
    conclude(meaning.code, output::failure_text(failure, session_.electorate().size()));
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
  asio::awaitable<std::optional<Finish>> run_under(Lease lease) {
    const auto tenancy =
        std::make_shared<Tenancy>(session_.electorate(), lease, session_.clock(), options_.stop, page_, isolation_, supervisor_events());
    tenancy_ = tenancy;
    child::Supervisor& supervisor = tenancy->supervisor;
    child::SpawnOptions spawn_options;
    spawn_options.environment = child::environment_with(lease_variables(lease, options_.servers));
    spawn_options.join_group = job_group_;
    if (const auto ready = supervisor.prepare(options_.command, spawn_options, inherited_); !ready) {
      const Finish finish = not_started(ready.error());
      co_return co_await release(*tenancy, finish);
    }
    supervisor.arm(lease.deadline);
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
    report_.fence = lease.fence;
    const Instant granted = session_.clock().now();
    const auto started = supervisor.start();
    if (!started) co_return co_await release(*tenancy, not_started(started.error()));
    if (!*started) {
      supervisor.drop();
      conclude(ExitCode::lost, "the lease was nearly over before the command could start; it was not started");
      say(/*busy=*/false);
      co_return co_await release(*tenancy, Finish{report_.outcome.exit_code});
    }
    tenancy->started = true;
    link_->tell_started();
    child::close_inherited(std::nullopt);
    keep(tenancy);
    const child::Ending ending = co_await supervisor.finish();
    page_.stopped_group = 0;
    report_.held = session_.clock().now() - granted;
    report_.left.assign(ending.left.begin(), ending.left.end());
    if (ending.unconfirmed) co_return unconfirmed(*tenancy);
    const Finish finish = finish_of(ending);
    const Duration keep = ending.lease_gone ? Duration::zero() : std::max(Duration::zero(), options_.min_hold - report_.held);
    co_return co_await release(*tenancy, finish, keep);
  }

  /// The job is stopped: others may have the lock until it goes on.
  asio::awaitable<void> give_back(Tenancy& tenancy) {
    tenancy.over = true;
    (void)co_await tenancy.held.release(/*by_hand=*/false);
    session_.console().detail(fmt::format("{}: the job is stopped, so it gave up its turn", key_));
    co_await link_->until_continued();
    link_->tell_waiting();
  }

  Finish not_started(const child::ExecFailure& failure) {
    report_.outcome = outcome_of("run", options_.resource, ExitCode::os_error, failure.text);
    report_.outcome.exit_code = failure.exit_code;
    report_.outcome.result = "not_started";
    say(/*busy=*/false);
    return Finish{failure.exit_code};
  }

  /// Something of the command may still run, so the lock must not be given to others a moment sooner than it is taken from us.
  Finish unconfirmed(Tenancy& tenancy) {
    tenancy.over = true;
    conclude(ExitCode::unconfirmed,
             fmt::format("UNSAFE: processes of the command could not be killed and may outlive the lock, which was not released: {}",
                         fmt::join(report_.left, " ")));
    say(/*busy=*/false);
    return Finish{report_.outcome.exit_code};
  }

  /// Renews in the background, and tells the supervisor what it must know.
  void keep(const std::shared_ptr<Tenancy>& tenancy) {
    spawn(session_.electorate().executor(), [this, tenancy]() -> asio::awaitable<void> {
      while (!tenancy->over) {
        const auto event = co_await tenancy->keeper.next();
        if (tenancy->over) co_return;
        if (const auto* extended = std::get_if<LeaseExtended>(&event)) {
          tenancy->supervisor.move_deadline(extended->deadline);
          session_.console().debug(fmt::format("{}: extended", key_));
          tenancy->trouble.clear();
          if (extended->after_trouble) session_.console().debug(fmt::format("{}: renewed again", key_));
        } else if (const auto* trouble = std::get_if<LeaseInTrouble>(&event)) {
          // An outage that is shorter than the lease is nobody's business; a longer one is told when the command is stopped.
          tenancy->trouble = output::faults_text(trouble->faults);
          if (trouble->first) session_.console().detail(fmt::format("{}: cannot renew, trying on: {}", key_, tenancy->trouble));
        } else {
          session_.console().error(fmt::format("{}: lost: {}", key_, output::ended_text(std::get<LeaseEnded>(event))));
          tenancy->supervisor.lease_is_over();
          co_return;
        }
      }
    });
  }

  child::SupervisorEvents supervisor_events() {
    child::SupervisorEvents events;
    events.stopping = [this] {
      if (!tenancy_->trouble.empty()) session_.console().error(fmt::format("{}: cannot renew: {}", key_, tenancy_->trouble));
    };
    events.unkillable = [this](const std::vector<pid_t>& pids) {
      session_.console().error(fmt::format("{}: cannot be killed; the lock is kept as long as it can be: {}", key_, fmt::join(pids, " ")));
    };
    return events;
  }

  /// What the command's end means for us.
  Finish finish_of(const child::Ending& ending) {
    if (WIFEXITED(ending.status)) report_.command_exit = WEXITSTATUS(ending.status);
    if (WIFSIGNALED(ending.status)) report_.command_signal = WTERMSIG(ending.status);
    if (!ending.left.empty())
      session_.console().notice(fmt::format("{}: processes that the command left running: {}", key_, fmt::join(ending.left, " ")));
    if (!ending.swept.empty())
      session_.console().notice(fmt::format("{}: processes that the command left running, killed with its pid namespace: {}", key_,
                                            fmt::join(ending.swept, " ")));
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

  /// Gives the lease back, or leaves it to end after `keep`; one that turns out not to be ours any more was lost while the command ran.
  asio::awaitable<Finish> release(Tenancy& tenancy, Finish finish, Duration keep = Duration::zero()) {
    tenancy.over = true;
    const ReleaseResult result = co_await tenancy.held.release(/*by_hand=*/false, keep);
    report_.released = result.decision == ReleaseDecision::released;
    if (!report_.released && report_.outcome.result == "released") report_.outcome.result = "unreleased";
    const bool known_lost = report_.outcome.exit_code == to_int(ExitCode::lost);
    if (result.decision == ReleaseDecision::not_ours && !known_lost) {
      conclude(ExitCode::lost, "lost while the command ran: " + output::not_ours_text(result.not_ours));
      if (result.not_ours) report_.outcome.holder = result.not_ours->holder;
      say(/*busy=*/false);
      co_return Finish{report_.outcome.exit_code};
    }
    if (result.decision == ReleaseDecision::unavailable && !known_lost) {
      session_.console().notice(fmt::format("{}: no quorum confirmed the release; what is left expires within {}; {}", key_,
                                            format_duration(options_.ttl.length()), output::faults_text(result.faults)));
    }
    co_return finish;
  }

  void conclude(ExitCode code, std::string message) { report_.outcome = outcome_of("run", options_.resource, code, std::move(message)); }

  void say(bool busy) const {
    const std::string line = fmt::format("{}: {}", key_, report_.outcome.message);
    if (session_.json()) return;  // the report says it
    busy ? session_.console().notice(line) : session_.console().error(line);
  }

  /// The last word to front, which exits as we say and writes the report to --status-fd.
  void tell(const Finish& finish) {
    report_.outcome.exit_code = finish.signal != 0 ? signal_exit_base + finish.signal : finish.exit_code;
    const std::string line = output::run_json(report_) + "\n";
    if (session_.json()) write_all(STDERR_FILENO, line);
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
  output::RunReport report_;
  int ended_by_ = 0;
};

}  // namespace

void hold(const Settings& settings, const RunOptions& options, HolderParts parts) {
  ::setpgid(0, 0);
  child::ignore_all();
  const Console console = make_console(settings);
  const child::Isolation& isolation = parts.isolation;
  try {
    Session session(settings, options.servers, options.server_timeout);
    Holder holder(session, options, std::move(parts));
    session.run(holder.live());
    isolation.clear_away();
  } catch (const std::exception& error) {
    // Front learns it from our end.
    console.error(escape_for_terminal(error.what()));
  }
  ::_exit(0);
}

}  // namespace redlock::cli
