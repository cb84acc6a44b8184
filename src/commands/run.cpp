#include "commands/run.hpp"

#include <fcntl.h>
#include <syslog.h>
#include <unistd.h>

#include <memory>

#include "commands/command_error.hpp"
#include "commands/held_command.hpp"
#include "guard/front.hpp"
#include "output/event_writer.hpp"
#include "output/failure_text.hpp"
#include "output/outcome.hpp"
#include "output/outcome_json.hpp"
#include "output/standard_error.hpp"
#include "output/text_parts.hpp"
#include "proc/descendants.hpp"
#include "proc/descriptors.hpp"

namespace redlock::commands {
namespace {

/// For a cgroup, its files and directory; for a pid namespace, the old and the new one, and the
/// lifeline of init.
constexpr std::size_t descriptors_of_isolation = 5;

/// The reason why the holder process failed.
std::string_view describe(guard::HolderExit::Source source) {
  using Source = guard::HolderExit::Source;
  switch (source) {
    case Source::holder_died:
      return "the holder process was killed";
    case Source::holder_stopped:
      return "the holder process was stopped (SIGSTOP)";
    case Source::not_forked:
      return "cannot fork the holder process";
    case Source::holder_starved:
      return "the holder process got no CPU";
    case Source::holder_hung:
    case Source::report:
      break;
  }
  return "the holder process hung";
}

void write_status(const SessionOptions& about, const RunOptions& options,
                  const std::string& report) {
  if (options.status_fd && !output::write_last(*options.status_fd, report))
    about.console.error("cannot write to --status-fd");
}

/// Writes the final report in the front process, when the holder process could not. `waited`: the
/// time since the start.
ExitAs report_without_holder(const SessionOptions& about, const RunOptions& options,
                             const guard::HolderExit& holder_exit, bool hook_began,
                             output::EventWriter* events, Duration waited) {
  using Source = guard::HolderExit::Source;
  const bool never_forked = holder_exit.source == Source::not_forked;
  const bool died = holder_exit.source == Source::holder_died || never_forked;
  const bool unsafe = holder_exit.unkillable || holder_exit.late > Duration::zero();

  output::RunState state;
  state.waited = waited;
  // A loss is the closest description, although there may have been no lease and no command.
  state.loss = output::Loss{std::nullopt, std::string(describe(holder_exit.source))};
  state.left.assign(holder_exit.left.begin(), holder_exit.left.end());
  state.end.emplace();
  state.end->late = holder_exit.late;

  const std::string& reason = state.loss->reason;
  output::CommandResult result =
      died ? output::CommandResult::os_error : output::CommandResult::lost;
  std::string message;

  if (unsafe) {
    result = output::CommandResult::unconfirmed;
    message =
        output::unsafe_text(!holder_exit.unkillable, state.left, holder_exit.late) + "; " + reason;
  } else if (never_forked) {
    message = reason + "; nothing was locked, and the command was not run";
  } else if (!holder_exit.command_began) {
    message = reason + "; the command had not started; the lock, if it was held, expires by itself";
  } else if (died) {
    message = reason + "; the command was killed, and the lock expires by itself";
  } else {
    message = reason + "; the command was stopped before the lock could expire";
  }
  if (options.on_stop && holder_exit.command_began)
    message += hook_began ? "; --on-stop may not have ended" : "; --on-stop was not run";

  state.outcome = output::outcome_of("run", options.resources, result, std::move(message));
  if (events != nullptr && holder_exit.command_began) {
    events->on(output::event::Lost{std::nullopt, reason}, wall_clock_now());
  } else if (events != nullptr) {
    events->on(output::event::NotAcquired{state.outcome, waited}, wall_clock_now());
  }

  const std::string json = output::run_json(state) + "\n";
  write_status(about, options, json);
  if (about.json) {
    output::StandardError::of_process().write(LOG_ERR, json);
  } else {
    about.console.error(output::keys_text(options.resources) + ": " + state.outcome.message);
  }
  return ExitAs{state.outcome.exit_code};
}

/// The writer for the events of both processes. The command does not inherit the descriptor, unless
/// it is a standard stream.
std::unique_ptr<output::EventWriter> write_events(const RunOptions& options) {
  if (!options.events_fd) return nullptr;
  auto writer = std::make_unique<output::EventWriter>(*options.events_fd, options.resources);
  const bool is_for_command = *options.events_fd <= STDERR_FILENO;
  if (!is_for_command) ::fcntl(*options.events_fd, F_SETFD, FD_CLOEXEC);
  return writer;
}

/// Without /proc only the command itself could be stopped when the lock is lost, not its
/// descendants.
void require_visible_processes() {
  if (proc::proc_shows_descendants()) return;
  throw CommandError(ExitCode::os_error,
                     "/proc does not show the processes of the command, so they could not be "
                     "stopped if the lock is lost; mount "
                     "/proc of this pid namespace, or use --on-lost term");
}

guard::Isolation isolate(const RunOptions& options, bool has_terminal) {
  auto isolation = guard::Isolation::make(options.isolation, has_terminal);
  if (isolation) return std::move(*isolation);
  throw CommandError(ExitCode::os_error, options.isolation_source + ": " + isolation.error());
}

}  // namespace

ExitAs run(const RunOptions& options, const SessionOptions& about, const Start& start) {
  const Instant began = BootClock::now();
  guard::SignalGate gate(start.inherited);
  std::size_t descriptors = descriptors_of_holder(options.servers);
  if (options.isolation != guard::IsolationMode::none) descriptors += descriptors_of_isolation;
  proc::require_spare_descriptors(descriptors);

  const auto event_writer = write_events(options);
  const bool in_job = guard::has_controlling_terminal();

  // Fail here, before there is a process to watch and before anything is locked.
  const guard::Isolation isolation = isolate(options, in_job);
  if (options.isolation == guard::IsolationMode::none && options.stop.on_lost == OnLost::kill)
    require_visible_processes();

  guard::Front front(gate, options.stop, in_job, options.status_fd, isolation.cgroup());
  if (front.fork_holder(start.argc, start.argv, proc::CiCookies::hide))
    hold_command(about, options, front, gate, start.inherited, isolation, event_writer.get());

  output::StandardError::of_process().forget();
  const guard::HolderExit holder_exit = front.guard();
  front.wait_for_holder();
  const bool reported = holder_exit.source == guard::HolderExit::Source::report;
  if (!reported) {
    return report_without_holder(about, options, holder_exit, front.page().hook_began,
                                 event_writer.get(), BootClock::now() - began);
  }
  write_status(about, options, holder_exit.report);
  return ExitAs{holder_exit.exit_code, holder_exit.signal};
}

}  // namespace redlock::commands
