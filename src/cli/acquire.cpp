#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "child/ancestry.hpp"
#include "child/front.hpp"
#include "child/process_stat.hpp"
#include "child/signal_pump.hpp"
#include "child/title.hpp"
#include "cli/acquisition.hpp"
#include "cli/command_error.hpp"
#include "cli/commands.hpp"
#include "cli/lease_file.hpp"
#include "cli/leftovers.hpp"
#include "cli/lock_options.hpp"
#include "cli/options.hpp"
#include "cli/run_options.hpp"
#include "cli/while_pid.hpp"

namespace redlock::cli {
namespace {

/// What goes on under the lease: the script that called us, or the process that it is kept for. We
/// are gone in a moment.
void name_the_script(Owner& owner, pid_t pid) {
  owner.pid = pid;
  std::ifstream comm(fmt::format("/proc/{}/comm", pid));
  std::getline(comm, owner.command);
}

std::optional<pid_t> read_pid(const Settings& settings) {
  const auto number = settings.get(option::while_pid);
  return number ? std::optional(static_cast<pid_t>(*number)) : std::nullopt;
}

/// A process that must not be killed with everything below it, or of which we could not tell, is
/// none to keep a lease for.
child::WatchedProcess open_process(const Settings& settings, pid_t pid) {
  const auto refuse = [&](const std::string& why) {
    Settings::refuse(*settings.find(option::while_pid), why);
  };
  constexpr std::string_view give = "give that of the script, $$";
  if (!child::proc_shows_processes()) {
    throw CommandError(ExitCode::os_error,
                       "--while-pid needs a /proc that shows the processes of this pid namespace, "
                       "to find what to stop if the lock is lost");
  }
  if (pid == 1 && child::in_first_pid_namespace()) {
    refuse(fmt::format(
        "1 is the init of this machine, and all of it would be killed if the lock is lost; {}",
        give));
  }
  auto process = child::WatchedProcess::open(pid);
  if (!process) refuse(process.error());
  if (!child::read_process_stat(pid) && !process->ended()) {
    throw CommandError(
        ExitCode::os_error,
        fmt::format("--while-pid: /proc does not show process {}, so it could not be stopped",
                    pid));
  }
  if (!child::is_ancestor(pid))
    refuse(fmt::format("process {} is no ancestor of this command; {}", pid, give));
  return std::move(*process);
}

std::optional<WhilePid> watch(const Settings& settings, std::optional<pid_t> pid, Ttl ttl,
                              const TtlDemands& demands) {
  if (!pid) return std::nullopt;
  return WhilePid{open_process(settings, *pid), read_stop_plan(settings, ttl, demands)};
}

std::optional<std::string> read_token_file(const Settings& settings) {
  auto path = settings.get(option::token_file);
  if (!path) return path;
  if (const auto checked = check_lease_file_target(*path); !checked) {
    throw CommandError(ExitCode::config, "--token-file: " + checked.error());
  }
  return path;
}

AcquireOptions read_options(const Settings& settings) {
  std::vector<Resource> resources = read_keys(settings);
  ServerOptions servers = read_server_options(settings);
  if (settings.get(option::json) && settings.get(option::export_lease))
    throw CommandError(ExitCode::usage, "--json and --export: choose one of them");
  const auto pid = read_pid(settings);
  const TtlDemands demands{servers.timeout, pid ? settings.get(option::grace) : Duration::zero(),
                           pid.has_value()};
  auto ttl = read_ttl(settings, demands);
  if (!ttl && !pid) {
    throw CommandError(ExitCode::usage,
                       "acquire needs --ttl DUR (nothing renews the lease, so it must last as long "
                       "as the work) or --while-pid PID (it is "
                       "renewed while that process lives); or use `redlock-cli run`");
  }
  if (!ttl) ttl = require_room(Ttl::from(option::default_ttl).value(), demands);
  Owner owner = read_owner(settings);
  name_the_script(owner, pid.value_or(::getppid()));
  owner.renewed_for = pid ? Duration(ttl->length()) : Duration::zero();
  return {
      read_lock_options(settings, std::move(resources), *ttl, std::move(servers), std::move(owner)),
      settings.get(option::export_lease), read_token_file(settings),
      watch(settings, pid, *ttl, demands)};
}

asio::awaitable<Finish> acquire_and_print(Session& session, Acquisition& acquisition) {
  Handout handout = co_await acquisition.acquire();
  if (!write_all(STDOUT_FILENO, handout.text) && handout.leases) {
    const std::string why =
        fmt::format("cannot write the lease to stdout: {}", std::strerror(errno));
    handout = co_await acquisition.undo(handout.leases, why);
  }
  co_await session.electorate().close(handout.leases ? Farewell::patient : Farewell::thorough);
  co_return handout.finish;
}

/// Without --while-pid: everything here.
Finish acquire_here(const Settings& settings, const AcquireOptions& options,
                    child::SignalGate& gate) {
  Session session(settings, options.servers, options.server_timeout);
  Acquisition acquisition(session, options, ::getpgrp());
  const auto pump = std::make_shared<child::SignalPump>(session.io().get_executor(), gate);
  pump->start([&acquisition](const child::ReceivedSignal& signal) {
    acquisition.on_signal(signal.number);
  });
  const Finish finish = session.run(acquire_and_print(session, acquisition));
  clear_away_behind(settings, options.servers, session);
  return finish;
}

/// With --while-pid: a holder acquires and stays; we print what it got, and end.
Finish acquire_behind(const Settings& settings, AcquireOptions& options, child::SignalGate& gate,
                      const Start& start) {
  child::Front front(gate, options.while_pid->stop, /*shares_group=*/false, std::nullopt, nullptr);
  if (front.fork_holder(start.argc, start.argv)) {
    keep_while_pid(settings, options, front.take_channel(), gate);
  }
  const child::Verdict verdict = front.guard();
  if (verdict.source != child::Verdict::Source::report) {
    throw CommandError(
        ExitCode::os_error,
        "the process that was to keep the lock was killed; the lock expires by itself");
  }
  if (!write_all(STDOUT_FILENO, verdict.report)) {
    const std::string why =
        fmt::format("cannot write the lease to stdout: {}", std::strerror(errno));
    front.dismiss_holder();  // it releases the lock
    throw CommandError(ExitCode::os_error, why);
  }
  front.tell_handed_over();
  return Finish{verdict.exit_code, verdict.signal};
}

}  // namespace

Finish acquire_command(const Settings& settings, const Start& start) {
  AcquireOptions options = read_options(settings);
  child::SignalGate gate(start.inherited);
  if (options.while_pid) return acquire_behind(settings, options, gate, start);
  return acquire_here(settings, options, gate);
}

}  // namespace redlock::cli
