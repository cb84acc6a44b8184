#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child/signal_pump.hpp"
#include "child/supervisor.hpp"
#include "cli/commands.hpp"
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

namespace redlock::cli {
namespace {

/// What the command finds in its environment.
std::vector<child::Variable> lease_variables(const Lease& lease, const ServerOptions& servers) {
  const LeaseVariables values = variables_of(LeaseHandle{lease.resource, lease.token, lease.fence, fingerprint(servers)});
  return {{"REDLOCK_KEY", values.key}, {"REDLOCK_TOKEN", values.token}, {"REDLOCK_FENCE", values.fence}, {"REDLOCK_LEASE", values.lease}};
}

/// What the keeper in the background and the run in front share; the keeper may still be waiting for an answer when the run is over.
struct Tenancy {
  Tenancy(Electorate& electorate, const Lease& lease, const Clock& clock, const child::StopPlan& stop)
      : held(electorate, lease.resource, lease.token, lease.fence), keeper(electorate, held, lease), supervisor(clock, stop) {}

  HeldLease held;
  LeaseKeeper keeper;
  child::Supervisor supervisor;
  bool over = false;
};

/// One `run`: wait, start, renew while it runs, release.
class Run {
 public:
  Run(Session& session, const RunOptions& options, const child::InheritedSignals& inherited, child::SignalGate& gate)
      : session_(session),
        options_(options),
        inherited_(inherited),
        pump_(std::make_shared<child::SignalPump>(session.io().get_executor(), gate)),
        key_(output::key_text(options.resource)) {
    report_.outcome = outcome_of("run", options.resource, ExitCode::internal, {});
  }

  asio::awaitable<Finish> execute() {
    const Instant started = session_.clock().now();
    pump_->start([this](const child::ReceivedSignal& signal) {
      if (!child::ends_a_wait(signal.number)) return;
      ended_by_ = signal.number;
      session_.interrupt().raise();
    });
    const Duration needed = options_.stop.grace + options_.stop.margin;
    const AcquireOrder order{options_.resource, options_.ttl, options_.owner, needed};
    auto lease = co_await wait_for_lock(session_, order, options_.wait);
    report_.waited = session_.clock().now() - started;
    Finish finish;
    if (lease) {
      finish = co_await run_under(*lease);
    } else {
      finish = fail(lease.error());
    }
    co_await session_.electorate().close(/*drain=*/!lease.has_value());
    tell(finish);
    co_return finish;
  }

 private:
  Finish fail(const AttemptFailure& failure) {
    if (failure.why == AttemptFailure::Why::interrupted) {
      report_.outcome.result = "interrupted";
      return Finish{0, ended_by_};
    }
    const FailureMeaning meaning = meaning_of(failure.why);
    const bool busy = meaning.code == ExitCode::busy;
    conclude(meaning.code, output::failure_text(failure, session_.electorate().size()));
    report_.outcome.holder = failure.holder;
    report_.outcome.faults = failure.faults;
    if (busy) report_.outcome.exit_code = options_.conflict_exit_code;
    say(busy);
    return Finish{report_.outcome.exit_code};
  }

  asio::awaitable<Finish> run_under(Lease lease) {
    report_.fence = lease.fence;
    const auto tenancy = std::make_shared<Tenancy>(session_.electorate(), lease, session_.clock(), options_.stop);
    child::Supervisor& supervisor = tenancy->supervisor;
    const Instant granted = session_.clock().now();
    // A signal that arrived behind the grant ends the wait all the same.
    if (session_.interrupt().raised()) {
      report_.outcome.result = "interrupted";
      co_return co_await release(*tenancy, Finish{0, ended_by_});
    }
    const auto environment = child::environment_with(lease_variables(lease, options_.servers));
    if (const auto started = supervisor.start(options_.command, environment, inherited_, lease.deadline); !started) {
      report_.outcome = outcome_of("run", options_.resource, ExitCode::os_error, started.error().text);
      report_.outcome.exit_code = started.error().exit_code;
      report_.outcome.result = "not_started";
      say(/*busy=*/false);
      co_return co_await release(*tenancy, Finish{started.error().exit_code});
    }
    pump_->deliver_to([tenancy](const child::ReceivedSignal& signal) { tenancy->supervisor.on_signal(signal); });
    keep(tenancy);
    const child::Ending ending = co_await supervisor.finish();
    report_.held = session_.clock().now() - granted;
    report_.left.assign(ending.left.begin(), ending.left.end());
    co_return co_await release(*tenancy, finish_of(ending));
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
          if (extended->after_trouble) session_.console().notice(fmt::format("{}: renewed again", key_));
        } else if (const auto* trouble = std::get_if<LeaseInTrouble>(&event)) {
          if (trouble->first)
            session_.console().notice(fmt::format("{}: cannot renew, trying on: {}", key_, output::faults_text(trouble->faults)));
        } else {
          session_.console().error(fmt::format("{}: lost: {}", key_, output::ended_text(std::get<LeaseEnded>(event))));
          tenancy->supervisor.lease_is_over();
          co_return;
        }
      }
    });
  }

  /// What the command's end means for us.
  Finish finish_of(const child::Ending& ending) {
    if (WIFEXITED(ending.status)) report_.command_exit = WEXITSTATUS(ending.status);
    if (WIFSIGNALED(ending.status)) report_.command_signal = WTERMSIG(ending.status);
    if (!ending.left.empty())
      session_.console().notice(fmt::format("{}: processes that the command left running: {}", key_, fmt::join(ending.left, " ")));
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

  /// Gives the lease back; one that turns out not to be ours any more was lost while the command ran.
  asio::awaitable<Finish> release(Tenancy& tenancy, Finish finish) {
    tenancy.over = true;
    const ReleaseResult result = co_await tenancy.held.release(/*by_hand=*/false);
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

  /// --status-fd and --json.
  void tell(const Finish& finish) {
    report_.outcome.exit_code = finish.signal != 0 ? signal_exit_base + finish.signal : finish.exit_code;
    const std::string line = output::run_json(report_) + "\n";
    if (session_.json()) write_all(STDERR_FILENO, line);
    if (options_.status_fd && !write_all(*options_.status_fd, line)) session_.console().error("cannot write to the --status-fd");
  }

  Session& session_;
  const RunOptions& options_;
  const child::InheritedSignals& inherited_;
  std::shared_ptr<child::SignalPump> pump_;
  std::string key_;
  output::RunReport report_;
  int ended_by_ = 0;
};

}  // namespace

Finish run_command(const Settings& settings, const child::InheritedSignals& inherited) {
  const RunOptions options = read_run_options(settings);
  child::SignalGate gate(inherited);
  Session session(settings, options.servers, options.server_timeout);
  Run run(session, options, inherited, gate);
  return session.run(run.execute());
}

}  // namespace redlock::cli
