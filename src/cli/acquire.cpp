#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "cli/commands.hpp"
#include "cli/lease_output.hpp"
#include "cli/option_rows.hpp"
#include "cli/read_lock_options.hpp"
#include "cli/read_run_options.hpp"
#include "cli/read_server_options.hpp"
#include "commands/acquire.hpp"
#include "commands/command_error.hpp"
#include "proc/ancestry.hpp"
#include "proc/process_stat.hpp"
#include "support/duration.hpp"

namespace redlock::cli {
namespace {

/// Names the process that works under the lease: the script that runs this command, or the one of
/// --while-pid. This process itself ends at once.
void name_the_script(Owner& owner, pid_t pid) {
  owner.pid = pid;
  std::ifstream comm(fmt::format("/proc/{}/comm", pid));
  std::getline(comm, owner.command);
}

std::optional<pid_t> read_pid(const Settings& settings) {
  const auto number = settings.get(option::while_pid);
  return number ? std::optional(static_cast<pid_t>(*number)) : std::nullopt;
}

/// Opens the process of --while-pid. Refuses one that must not be killed with all its descendants,
/// or whose place in the process tree is unknown.
proc::WatchedProcess open_process(const Settings& settings, pid_t pid) {
  const auto refuse = [&](const std::string& why) {
    Settings::refuse(*settings.find(option::while_pid), why);
  };
  constexpr std::string_view give = "use that of the script, $$";
  if (!proc::proc_shows_processes()) {
    throw CommandError(ExitCode::os_error,
                       "--while-pid needs a /proc that shows the processes of this pid namespace, "
                       "to find what to stop if the lock is lost");
  }
  if (pid == 1 && proc::in_first_pid_namespace()) {
    refuse(fmt::format(
        "1 is the init of this machine, and all of it would be killed if the lock is lost; {}",
        give));
  }
  auto process = proc::WatchedProcess::open(pid);
  if (!process) refuse(process.error());
  if (!proc::read_process_stat(pid) && !process->ended()) {
    throw CommandError(
        ExitCode::os_error,
        fmt::format("--while-pid: /proc does not show process {}, so it could not be stopped",
                    pid));
  }
  if (!proc::is_ancestor(pid))
    refuse(fmt::format("process {} is not an ancestor of this command; {}", pid, give));
  return std::move(*process);
}

std::optional<commands::Background> read_background(const Settings& settings,
                                                    std::optional<pid_t> pid, Ttl ttl,
                                                    const TtlDemands& demands) {
  if (!pid && !settings.get(option::detach)) return std::nullopt;
  std::optional<proc::WatchedProcess> process;
  if (pid) process.emplace(open_process(settings, *pid));
  return commands::Background{.process = std::move(process),
                              .stop = read_stop_plan(settings, ttl, demands)};
}

/// No process ends a detached lease, so it needs a time limit and a file with which to release it.
void check_detach(const Settings& settings) {
  const auto refuse = [](const char* why) { throw CommandError(ExitCode::usage, why); };
  if (!settings.get(option::detach)) return;
  if (settings.get(option::while_pid)) {
    refuse("--detach and --while-pid cannot be combined");
  }
  if (!read_max_hold(settings)) {
    refuse("--detach needs --max-hold DUR: no process ends it, so a forgotten one would never end");
  }
  if (!settings.get(option::token_file))
    refuse("--detach needs --token-file FILE, with which `redlock-cli release` ends it");
}

/// Refuses the standard descriptors: stdout is for the lease, and a holder process that keeps
/// stderr open would make a reader of the caller's output wait until the lock is released.
std::optional<int> read_events_fd(const Settings& settings) {
  const auto fd = read_descriptor(settings, option::events_fd);
  if (fd && *fd <= STDERR_FILENO) {
    Settings::refuse(*settings.find(option::events_fd),
                     "acquire needs a descriptor of its own for events, 3 or higher");
  }
  return fd;
}

commands::AcquireOptions read_options(const Settings& settings) {
  std::vector<Resource> resources = read_keys(settings);
  commands::ServerOptions servers = read_server_options(settings);
  check_lease_output(settings);
  check_detach(settings);
  const auto pid = read_pid(settings);
  const bool is_kept = pid || settings.get(option::detach);
  const TtlDemands demands{.server_timeout = servers.timeout,
                           .grace = pid ? settings.get(option::grace) : Duration::zero(),
                           .supervised = is_kept};
  auto ttl = read_ttl(settings, demands);
  if (!ttl && !is_kept) {
    throw CommandError(ExitCode::usage,
                       "acquire needs --ttl DUR (nothing renews the lease, so it must last as long "
                       "as the work), --while-pid PID (it is renewed while that process lives) or "
                       "--detach --max-hold DUR --token-file FILE (over the steps of a CI job); or "
                       "use `redlock-cli run`");
  }
  if (!ttl) ttl = require_room(settings, Ttl::from(default_ttl).value(), demands);
  // Nothing stops a script that renews by hand, but its lease must not outlast the limit.
  if (const auto max_hold = read_max_hold(settings);
      max_hold && !is_kept && ttl->length() > *max_hold) {
    Settings::refuse(*settings.find(option::ttl),
                     fmt::format("{} is longer than the --max-hold of {}",
                                 format_duration(ttl->length()), format_duration(*max_hold)));
  }
  Owner owner = read_owner(settings);
  name_the_script(owner, pid.value_or(::getppid()));
  if (const auto watched = pid ? proc::read_process_stat(*pid) : std::nullopt)
    owner.pid_start = watched->started;
  owner.renewed_for = is_kept ? Duration(ttl->length()) : Duration::zero();
  owner.detached = is_kept && !pid;
  owner.stoppable = pid && settings.get(option::on_lost) != OnLost::warn;
  commands::AcquireOptions options{read_lock_options(settings, std::move(resources), *ttl,
                                                     std::move(servers), std::move(owner))};
  read_lease_output(settings, options);
  options.events_fd = read_events_fd(settings);
  options.background = read_background(settings, pid, *ttl, demands);
  return options;
}

}  // namespace

commands::ExitAs acquire_command(const Settings& settings, const commands::Start& start) {
  commands::AcquireOptions options = read_options(settings);
  return commands::acquire(std::move(options), lease_session_options(settings), start);
}

}  // namespace redlock::cli
