#include "cli/run_options.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "cli/lock_options.hpp"
#include "cli/server_options.hpp"
#include "run/command_error.hpp"
#include "run/nesting.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

constexpr std::chrono::seconds default_ttl{30};

/// 30 s; but a run within a run lives by the ttl of the outer one.
Ttl usual_ttl(const std::vector<Resource>& resources, const run::ServerOptions& servers) {
  Ttl ttl = *Ttl::from(default_ttl);
  for (const EnclosingLease& lease : run::enclosing_leases(servers)) {
    for (const LeaseHandle::Part& part : lease.handle.parts) {
      if (std::binary_search(resources.begin(), resources.end(), part.resource)) ttl = std::min(ttl, lease.ttl);
    }
  }
  return ttl;
}

std::string basename_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// The words of the command: CMD and its arguments, or the shell that -c asks for.
std::vector<std::string> read_words(const Settings& settings) {
  const auto text = settings.text("command");
  const auto& words = settings.line().after_dashes;
  if (text && words) throw CommandError(ExitCode::usage, "-c TEXT and -- CMD: choose one of them");
  if (text) {
    const char* shell = std::getenv("SHELL");
    return {shell != nullptr && shell[0] != '\0' ? shell : "/bin/sh", "-c", *text};
  }
  if (!words || words->empty()) throw CommandError(ExitCode::usage, "run needs a command behind --");
  return *words;
}

child::Command read_command(const Settings& settings) {
  std::vector<std::string> words = read_words(settings);
  auto path = child::find_program(words.front());
  if (!path) throw CommandError(static_cast<ExitCode>(path.error().exit_code), path.error().text);
  return {std::move(*path), std::move(words)};
}

child::OnLost read_on_lost(const Settings& settings) {
  const std::string choice = settings.text("on-lost").value_or("kill");
  if (choice == "kill") return child::OnLost::kill;
  if (choice == "term") return child::OnLost::term;
  if (choice == "warn") return child::OnLost::warn;
  Settings::refuse(*settings.find("on-lost"), "must be kill, term or warn");
}

child::Descendants read_descendants(const Settings& settings) {
  const std::string choice = settings.text("descendants").value_or("leave");
  if (choice == "leave") return child::Descendants::leave;
  if (choice == "wait") return child::Descendants::wait;
  if (choice == "kill") return child::Descendants::kill;
  Settings::refuse(*settings.find("descendants"), "must be leave, wait or kill");
}

int read_stop_signal(const Settings& settings) {
  const std::string name = settings.text("stop-signal").value_or("TERM");
  if (const auto signal = child::parse_signal(name)) return *signal;
  const Setting setting = *settings.find("stop-signal");
  Settings::refuse(setting, fmt::format("'{}' is no signal; write one like TERM, INT or 15",
                                        escape_for_terminal(setting.shown())));
}

Duration read_min_hold(const Settings& settings) {
  const Duration span = settings.duration("min-hold").value_or(Duration::zero());
  if (span > Ttl::max) Settings::refuse(*settings.find("min-hold"), "must be at most a year");
  return span;
}

child::IsolationMode read_isolation(const Settings& settings) {
  const std::string choice = settings.text("isolate").value_or("none");
  if (choice == "none") return child::IsolationMode::none;
  if (choice == "cgroup") return child::IsolationMode::cgroup;
  if (choice == "pidns") return child::IsolationMode::pid_namespace;
  Settings::refuse(*settings.find("isolate"), "must be none, cgroup or pidns");
}

/// `--isolate cgroup`, or what else asks for it.
std::string isolation_source(const Settings& settings) {
  const auto setting = settings.find("isolate");
  return setting ? setting->where + " " + setting->values.front() : std::string();
}

std::optional<int> read_status_fd(const Settings& settings) {
  const auto number = settings.number("status-fd", std::numeric_limits<int>::max());
  if (!number) return std::nullopt;
  const int fd = static_cast<int>(*number);
  if (!is_given_for_writing(fd)) {
    Settings::refuse(*settings.find("status-fd"), fmt::format("descriptor {} is not open for writing", fd));
  }
  return fd;
}

}  // namespace

bool is_given_for_writing(int fd) {
  const int mode = ::fcntl(fd, F_GETFL);
  // Close-on-exec: it is none of the caller's then, but one that we opened ourselves.
  return mode >= 0 && (mode & O_ACCMODE) != O_RDONLY && (::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0;
}

child::StopPlan read_stop_plan(const Settings& settings, Ttl ttl, const TtlDemands& demands) {
  const child::OnLost on_lost = read_on_lost(settings);
  // Where nothing is promised, nothing is measured for it.
  const Duration measure_interval =
      on_lost == child::OnLost::kill ? extend_interval(ttl) / 2 : Duration::zero();
  return {demands.grace.value_or(default_grace(ttl)),
          margin(ttl),
          max_margin(ttl, demands),
          measure_interval,
          read_stop_signal(settings),
          on_lost,
          read_descendants(settings)};
}

run::RunOptions read_run_options(const Settings& settings) {
  std::vector<Resource> resources = read_keys(settings);
  child::Command command = read_command(settings);
  run::ServerOptions servers = read_server_options(settings);
  const auto grace = settings.duration("grace");
  const TtlDemands demands{servers.timeout, grace};
  const Ttl fallback = usual_ttl(resources, servers);
  const auto given = read_ttl(settings, demands);
  const Ttl ttl = given ? *given : require_room(fallback, demands);
  Owner owner = read_owner(settings);
  owner.pid = ::getpid();
  owner.command = basename_of(command.arguments.front());
  owner.supervised = true;
  owner.renewed_for = ttl.length();
  const Duration min_hold = read_min_hold(settings);
  raise_restart_guard(settings, servers, "min-hold", min_hold);
  return {read_lock_options(settings, std::move(resources), ttl, std::move(servers), std::move(owner)),
          read_stop_plan(settings, ttl, demands),
          std::move(command),
          read_isolation(settings),
          isolation_source(settings),
          read_status_fd(settings),
          min_hold};
}

}  // namespace redlock::cli
