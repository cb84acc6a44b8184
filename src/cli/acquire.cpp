#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "child/signal_pump.hpp"
#include "cli/command_error.hpp"
#include "cli/commands.hpp"
#include "cli/lease_file.hpp"
#include "cli/lock_options.hpp"
#include "cli/outcome.hpp"
#include "cli/session.hpp"
#include "cli/waiting.hpp"
#include "core/lease_handle.hpp"
#include "engine/held_lease.hpp"
#include "output/describe.hpp"

namespace redlock::cli {
namespace {

struct AcquireOptions {
  Resource resource;
  Ttl ttl;
  WaitPolicy wait;
  int conflict_exit_code;
  Owner owner;
  ServerOptions servers;
  Duration server_timeout;
  bool prints_export;
  std::optional<std::string> token_file;
};

/// We are gone in a moment; what goes on under the lease is the script that called us.
void name_the_script(Owner& owner) {
  owner.pid = ::getppid();
  std::ifstream comm(fmt::format("/proc/{}/comm", owner.pid));
  std::getline(comm, owner.command);
}

AcquireOptions read_options(const Settings& settings) {
  Resource resource = read_key(settings);
  ServerOptions servers = read_server_options(settings);
  if (settings.flag("json") && settings.flag("export")) throw CommandError(ExitCode::usage, "--json and --export: choose one of them");
  const TtlDemands demands{servers.timeout, Duration::zero()};
  const Ttl ttl =
      require_ttl(settings, demands, ": nothing renews the lease, so it must last as long as the work (or use `redlock-cli run`)");
  Owner owner = read_owner(settings);
  name_the_script(owner);
  const Duration timeout = servers.timeout.value_or(default_server_timeout(ttl));
  return {std::move(resource), ttl,     read_wait_policy(settings), read_conflict_exit_code(settings), std::move(owner),
          std::move(servers),  timeout, settings.flag("export"),    settings.text("token-file")};
}

/// One `acquire` from the wait to the hand-over.
class Acquisition {
 public:
  Acquisition(Session& session, const AcquireOptions& options) : session_(session), options_(options) {}

  /// Ends the wait. Once the lease is handed over it is the script's, and a signal changes nothing.
  void on_signal(int signal) {
    if (handed_over_ || !child::ends_a_wait(signal)) return;
    ended_by_ = signal;
    session_.interrupt().raise();
  }

  asio::awaitable<Finish> run() {
    const AcquireOrder order{options_.resource, options_.ttl, options_.owner, margin(options_.ttl)};
    auto lease = co_await wait_for_lock(session_, order, options_.wait);
    if (!lease) co_return co_await fail(lease.error());
    if (session_.interrupt().raised()) {
      co_await give_back(*lease);
      co_return interrupted();
    }
    if (const auto problem = hand_over(*lease)) {
      co_await give_back(*lease);
      co_return not_handed_over(*problem);
    }
    handed_over_ = true;
    co_await session_.electorate().close(/*drain=*/false);
    co_return Finish{};
  }

 private:
  asio::awaitable<Finish> fail(const AttemptFailure& failure) {
    co_await session_.electorate().close(/*drain=*/true);
    if (failure.why == AttemptFailure::Why::interrupted) co_return interrupted();
    const FailureMeaning meaning = meaning_of(failure.why);
    const bool busy = meaning.code == ExitCode::busy;
    output::Outcome outcome =
        outcome_of("acquire", options_.resource, meaning.code, output::failure_text(failure, session_.electorate().size()));
    if (busy) outcome.exit_code = options_.conflict_exit_code;
    outcome.holder = failure.holder;
    outcome.faults = failure.faults;
    co_return conclude(outcome, busy);
  }

  /// Hands the lease to the script. What went wrong, or nothing.
  std::optional<std::string> hand_over(const Lease& lease) {
    const LeaseHandle handle{lease.resource, lease.token, lease.fence, fingerprint(options_.servers)};
    if (options_.token_file) {
      const auto written = write_lease_file(*options_.token_file, handle);
      if (!written) return "cannot write the lease to " + written.error();
      wrote_file_ = true;
    }
    if (!write_all(STDOUT_FILENO, printed(lease, handle))) return fmt::format("cannot write the lease to stdout: {}", std::strerror(errno));
    return std::nullopt;
  }

  [[nodiscard]] std::string printed(const Lease& lease, const LeaseHandle& handle) const {
    if (session_.json()) {
      output::Outcome outcome = outcome_of("acquire", options_.resource, ExitCode::done, {});
      outcome.result = "acquired";
      return output::lease_json(outcome, lease, handle.text()) + "\n";
    }
    if (options_.prints_export) return export_line(handle);
    if (options_.token_file) return {};
    return lease.token.secret() + "\n";
  }

  /// Releases a lease that nobody was told of.
  asio::awaitable<void> give_back(const Lease& lease) {
    HeldLease held(session_.electorate(), lease.resource, lease.token, lease.fence);
    co_await held.release(/*by_hand=*/false);
    co_await session_.electorate().close(/*drain=*/true);
    if (wrote_file_) ::unlink(options_.token_file->c_str());
  }

  Finish not_handed_over(const std::string& problem) {
    return conclude(outcome_of("acquire", options_.resource, ExitCode::os_error, problem + "; the lock was released again"),
                    /*busy=*/false);
  }

  [[nodiscard]] Finish interrupted() const {
    if (options_.prints_export) write_all(STDOUT_FILENO, failed_export_line(signal_exit_base + ended_by_));
    return Finish{0, ended_by_};
  }

  /// Says that there is no lease, on stderr and to whoever reads stdout.
  [[nodiscard]] Finish conclude(const output::Outcome& outcome, bool busy) const {
    const std::string line = fmt::format("{}: {}", output::key_text(options_.resource), outcome.message);
    busy ? session_.console().notice(line) : session_.console().error(line);
    if (session_.json()) write_all(STDOUT_FILENO, output::outcome_json(outcome) + "\n");
    if (options_.prints_export) write_all(STDOUT_FILENO, failed_export_line(outcome.exit_code));
    return Finish{outcome.exit_code};
  }

  Session& session_;
  const AcquireOptions& options_;
  int ended_by_ = 0;
  bool handed_over_ = false;
  bool wrote_file_ = false;
};

}  // namespace

Finish acquire_command(const Settings& settings, const Start& start) {
  const AcquireOptions options = read_options(settings);
  child::SignalGate gate(start.inherited);
  Session session(settings, options.servers, options.server_timeout);
  Acquisition acquisition(session, options);
  const auto pump = std::make_shared<child::SignalPump>(session.io().get_executor(), gate);
  pump->start([&acquisition](const child::ReceivedSignal& signal) { acquisition.on_signal(signal.number); });
  return session.run(acquisition.run());
}

}  // namespace redlock::cli
