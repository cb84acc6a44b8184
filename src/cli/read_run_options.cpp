#include "cli/read_run_options.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/hints.hpp"
#include "cli/option_rows.hpp"
#include "cli/read_lock_options.hpp"
#include "cli/read_server_options.hpp"
#include "cli/redact.hpp"
#include "commands/command_error.hpp"
#include "commands/nesting.hpp"
#include "guard/notify_socket.hpp"
#include "proc/watched_process.hpp"
#include "support/duration.hpp"
#include "support/environment.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

/// The default ttl: 30 s, or less if a parent lease of these keys has a shorter ttl.
Ttl usual_ttl(const std::vector<Resource>& resources, const commands::ServerOptions& servers) {
  Ttl ttl = *Ttl::from(default_ttl);
  for (const ParentLease& lease : commands::parent_leases(servers)) {
    for (const LeaseHandle::Part& part : lease.handle.parts) {
      if (std::binary_search(resources.begin(), resources.end(), part.resource))
        ttl = std::min(ttl, lease.ttl);
    }
  }
  return ttl;
}

std::string basename_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

constexpr std::string_view standard_shell = "/bin/sh";

/// Whether this is the shell of an account that must not log in. `sudo -u`, runuser(1) and systemd
/// set SHELL to it, and it would run none of the text.
bool forbids_login(const std::string& shell) {
  const std::string name = basename_of(shell);
  return name == "nologin" || name == "false" || name == "true";
}

std::vector<std::string> words_for_shell(const std::string& text) {
  const std::string shell = environment_value("SHELL");
  const bool is_usable = !shell.empty() && !forbids_login(shell);
  return {is_usable ? shell : std::string(standard_shell), "-c", text};
}

/// The command line to execute: CMD with its arguments, or the shell with TEXT for -c.
std::vector<std::string> read_words(const Settings& settings) {
  const auto text = settings.get(option::command);
  const CommandLine& line = settings.line();
  if (!text) {
    if (!line.words.empty()) return line.words;
    throw CommandError(ExitCode::usage, "run needs a command: redlock-cli run -k KEY -- CMD");
  }
  if (line.has_dashes) {
    throw CommandError(ExitCode::usage, "-c TEXT and -- CMD cannot be combined");
  }
  if (!line.words.empty()) {
    const std::string word = shell_word(shown_word(line.words.front()));
    throw CommandError(ExitCode::usage,
                       fmt::format("-c takes one word, the whole text for the shell, and {} is one "
                                   "too many: put all of it in quotes",
                                   word));
  }
  return words_for_shell(*text);
}

guard::Command find_command(std::vector<std::string> words) {
  auto path = guard::find_program(words.front());
  if (!path) {
    const guard::ExecFailure& failure = path.error();
    throw CommandError(failure.exit_code, failure.text + hint_for_program(words.front()));
  }
  return {std::move(*path), std::move(words)};
}

/// The setting that requests isolation, as shown in messages: `--isolate cgroup`.
std::string isolation_source(const Settings& settings) {
  const auto setting = settings.find(option::isolate);
  return setting ? setting->where + " " + setting->values.front() : std::string();
}

/// --on-lost as messages show it: `--on-lost warn`.
Rival on_lost_rival(const Settings& settings) {
  const Setting setting = *settings.find(option::on_lost);
  Rival rival = rival_of(setting, setting.where, "--on-lost kill");
  rival.name += " " + setting.values.front();
  return rival;
}

std::optional<Duration> read_once_per(const Settings& settings) {
  const auto period = settings.get(option::once_per);
  const auto rival = find_sharing(settings);
  if (period && rival) {
    Settings::refuse(*settings.find(option::once_per),
                     fmt::format("needs the lock alone, without {}: runs side by side cannot tell "
                                 "which of them will succeed; {}",
                                 rival->name, rival->remedy));
  }
  return period;
}

std::optional<guard::Command> read_on_stop(const Settings& settings) {
  const auto text = settings.get(option::on_stop);
  if (!text) return std::nullopt;
  if (text->empty()) Settings::refuse(*settings.find(option::on_stop), "the text is empty");
  if (settings.get(option::on_lost) != OnLost::kill) {
    Settings::refuse(*settings.find(option::on_stop),
                     fmt::format("needs --on-lost kill: with {} the command may go on without the "
                                 "lock",
                                 on_lost_rival(settings).name));
  }
  const std::optional<Duration> grace = settings.get(option::grace);
  if (grace && *grace == Duration::zero())
    Settings::refuse(*settings.find(option::on_stop), "needs a --grace above 0: it has that long");
  // It must also work where SHELL does not, because only a failure would show that.
  return find_command({std::string(standard_shell), "-c", *text});
}

/// Reads --with-parent. To be called early: the end of the parent before this call goes unnoticed.
UniqueFd watch_parent(const Settings& settings) {
  if (!settings.get(option::with_parent)) return {};
  auto parent = proc::watch_parent_process();
  if (parent) return std::move(*parent);
  const proc::NoParentProcess& none = parent.error();
  throw CommandError(none.may_have_ended ? ExitCode::usage : ExitCode::os_error,
                     "--with-parent: " + none.text);
}

}  // namespace

bool is_given_for_writing(int fd) {
  const int mode = ::fcntl(fd, F_GETFL);
  // A descriptor with close-on-exec was opened by this process, not inherited.
  return mode >= 0 && (mode & O_ACCMODE) != O_RDONLY && (::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0;
}

std::optional<int> read_descriptor(const Settings& settings, const Option<NumberType>& option) {
  const auto number = settings.get(option);
  if (!number) return std::nullopt;
  const int fd = static_cast<int>(*number);
  if (!is_given_for_writing(fd)) {
    Settings::refuse(*settings.find(option),
                     fmt::format("descriptor {} is not open for writing", fd));
  }
  return fd;
}

std::optional<Duration> read_max_hold(const Settings& settings) {
  const auto max_hold = settings.get(option::max_hold);
  return max_hold == infinite_duration ? std::nullopt : max_hold;
}

StopPlan read_stop_plan(const Settings& settings, Ttl ttl, const TtlDemands& demands) {
  const OnLost on_lost = settings.get(option::on_lost);
  // Only --on-lost kill promises an end in time, so only then the cost of stopping is measured.
  const Duration measure_interval =
      on_lost == OnLost::kill ? extend_interval(ttl) / 2 : Duration::zero();
  return {.grace = demands.grace.value_or(default_grace(ttl)),
          .margin = margin(ttl),
          .max_margin = max_margin(ttl, demands),
          .measure_interval = measure_interval,
          .stop_signal = settings.get(option::stop_signal),
          .on_lost = on_lost,
          .descendants = settings.get(option::descendants),
          .signal_to = settings.get(option::signal_to),
          .max_hold = read_max_hold(settings)};
}

commands::RunOptions read_run_options(const Settings& settings) {
  std::vector<Resource> resources = read_keys(settings);
  guard::Command command = find_command(read_words(settings));
  commands::ServerOptions servers = read_server_options(settings);
  const auto grace = settings.get(option::grace);
  const TtlDemands demands{.server_timeout = servers.timeout, .grace = grace};
  const Ttl fallback = usual_ttl(resources, servers);
  const auto given = read_ttl(settings, demands);
  const Ttl ttl = given ? *given : require_room(settings, fallback, demands);
  Owner owner = read_owner(settings);
  owner.pid = ::getpid();
  owner.command = basename_of(command.arguments.front());
  owner.supervised = true;
  owner.renewed_for = ttl.length();
  owner.stoppable = settings.get(option::on_lost) != OnLost::warn;
  const Duration min_hold = settings.get(option::min_hold);
  if (const auto max_hold = read_max_hold(settings); max_hold && min_hold > *max_hold) {
    Settings::refuse(
        *settings.find(option::min_hold),
        fmt::format("{} is longer than the {} of {}", format_duration(min_hold),
                    settings.find(option::max_hold)->where, format_duration(*max_hold)));
  }
  if (settings.get(option::replace) && !owner.stoppable) {
    const Rival rival = on_lost_rival(settings);
    Settings::refuse(*settings.find(option::replace),
                     fmt::format("stops CMD for a newer run, and {} never stops it; {}", rival.name,
                                 rival.remedy));
  }
  raise_restart_guard(settings, servers, option::min_hold, min_hold);
  commands::RunOptions options{
      read_lock_options(settings, std::move(resources), ttl, std::move(servers), std::move(owner))};
  options.once_per = read_once_per(settings);
  options.stop = read_stop_plan(settings, ttl, demands);
  options.command = std::move(command);
  options.isolation = settings.get(option::isolate);
  options.isolation_source = isolation_source(settings);
  options.status_fd = read_descriptor(settings, option::status_fd);
  options.events_fd = read_descriptor(settings, option::events_fd);
  options.notifies_service = settings.get(option::sd_notify) && guard::has_service_manager();
  options.min_hold = min_hold;
  options.insists_on_min_hold =
      min_hold > Duration::zero() && settings.is_on_line(option::min_hold);
  options.fresh_exit_code = static_cast<int>(settings.get(option::fresh_exit_code));
  options.success_codes = settings.get(option::success_codes).value_or(std::vector<int>{});
  options.sets_descendants = settings.find(option::descendants).has_value();
  options.records_skips = settings.get(option::record_skips);
  options.on_stop = read_on_stop(settings);
  options.parent = watch_parent(settings);
  return options;
}

}  // namespace redlock::cli
