#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/option_rows.hpp"
#include "cli/read_run_options.hpp"
#include "cli/redact.hpp"
#include "cli/settings.hpp"
#include "commands/command_error.hpp"
#include "commands/lease_file.hpp"
#include "commands/run.hpp"
#include "guard/signals.hpp"
#include "output/outcome.hpp"
#include "output/outcome_json.hpp"
#include "output/standard_error.hpp"
#include "support/environment.hpp"
#include "support/text.hpp"
#include "support/trace.hpp"

namespace redlock::cli {
namespace {

/// Occupies closed standard descriptors: the next socket would get such a number, and messages
/// would go to a server. The placeholders fail like closed descriptors, because they are open for
/// the wrong direction, and close-on-exec keeps them from the command.
void occupy_standard_descriptors() {
  std::array<pollfd, 3> standard{pollfd{STDIN_FILENO, 0, 0}, pollfd{STDOUT_FILENO, 0, 0},
                                 pollfd{STDERR_FILENO, 0, 0}};
  ::poll(standard.data(), standard.size(), 0);
  for (const auto& [fd, asked, found] : standard) {
    if ((found & POLLNVAL) == 0) continue;
    const int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", mode | O_CLOEXEC) < 0) return;  // no /dev, and no better fallback
  }
}

commands::ExitAs dispatch(const CommandLine& line, const commands::Start& start) {
  // Shells run this when they start, so an error in the settings must not make it fail.
  if (line.command->bit == for_completion) return completion_command(line);

  if (const auto begun = begin_trace(); !begun) throw CommandError(ExitCode::config, begun.error());
  const Settings settings(line);
  if (line.command->bit == for_run && settings.get(option::json))
    output::StandardError::of_process().write_json();
  refuse_misspelt_variables(settings);
  switch (line.command->bit) {
    case for_run:
      return commands::run(read_run_options(settings), session_options(settings), start);
    case for_acquire:
      return acquire_command(settings, start);
    case for_hold:
      return hold_command(settings, start);
    case for_extend:
      return extend_command(settings);
    case for_release:
      return release_command(settings);
    case for_stop:
      return stop_command(settings);
    case for_status:
      return status_command(settings, start);
    case for_doctor:
      return doctor_command(settings);
    default:
      break;
  }
  throw CommandError(ExitCode::internal, "a command without a function");
}

/// The descriptor that --status-fd or its variable names; nullopt if the value is invalid.
std::optional<int> status_fd_of(const CommandLine& line) {
  std::string text = environment_value(option::status_fd.variable());
  if (const auto* given = line.find(option::status_fd)) text = given->front();
  const auto number = option::status_fd.type().read(text, text);
  if (!number || !is_given_for_writing(static_cast<int>(*number))) return std::nullopt;
  return static_cast<int>(*number);
}

bool is_run_with_json(const CommandLine& line) {
  return line.command != nullptr && line.command->bit == for_run &&
         line.find(option::json) != nullptr;
}

/// Reports an error from before the command began its work in the form that the caller reads: an
/// object for `--json` and `--status-fd`, and a failing command for `eval "$(redlock-cli acquire
/// --export …)"`. Only the command line counts, because the settings may be the cause of the error.
void report_to_readers(const CommandLine& line, ExitCode code, std::string_view text) {
  const bool is_run = line.command != nullptr && line.command->bit == for_run;
  const std::string name =
      line.command != nullptr ? std::string(line.command->name) : shown_word(line.name);
  output::Outcome outcome =
      output::outcome_of(name, {}, output::result_of(code), std::string(text));
  outcome.exit_code = to_int(code);
  if (line.find(option::json) != nullptr) {
    const std::string json = output::outcome_json(outcome) + "\n";
    is_run ? output::StandardError::of_process().write(LOG_ERR, json)
           : static_cast<void>(output::write_all(STDOUT_FILENO, json));
  }
  if (is_run) {
    output::RunState state;
    state.outcome = outcome;
    if (const auto fd = status_fd_of(line)) output::write_last(*fd, output::run_json(state) + "\n");
  }
  if (line.find(option::export_lease) != nullptr) {
    output::write_all(STDOUT_FILENO, commands::failed_export_line(to_int(code)));
  }
}

commands::ExitAs run_program(const std::vector<std::string>& arguments,
                             const commands::Start& start) {
  CommandLine line;
  ExitCode code = ExitCode::internal;
  std::string text;
  try {
    read_command_line(arguments, line);
    if (const std::string asked = help_or_version(line); !asked.empty()) {
      // EPIPE: a reader such as `head` has read as much as it needs.
      if (!output::write_all(STDOUT_FILENO, asked) && errno != EPIPE) {
        throw CommandError(ExitCode::os_error, "cannot write to stdout: " + errno_text(errno));
      }
      return {};
    }
    return dispatch(line, start);
  } catch (const CommandError& error) {
    code = error.code();
    text = error.what();
  } catch (const std::system_error& error) {
    code = ExitCode::os_error;
    text = escape_for_terminal(error.what());
  } catch (const std::exception& error) {
    text = "internal error: " + escape_for_terminal(error.what());
  }
  // With `run --json` the result on stderr contains the message.
  if (!is_run_with_json(line)) output::Console(/*quiet=*/false, /*verbosity=*/0).error(text);
  report_to_readers(line, code, text);
  return commands::ExitAs{to_int(code)};
}

/// Returns the exit code, or kills this process with the signal that killed the command.
int run_main(int argc, char** argv) {
  const guard::InheritedSignals inherited = guard::InheritedSignals::capture();
  // Writing to a closed pipe is handled as an error, and must not kill this process.
  ::signal(SIGPIPE, SIG_IGN);
  occupy_standard_descriptors();
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (arguments.empty()) {
    output::StandardError::of_process().write(LOG_ERR, overview());
    output::StandardError::of_process().finish();
    return to_int(ExitCode::usage);
  }
  const commands::ExitAs exit_as = run_program(arguments, commands::Start{inherited, argc, argv});
  output::StandardError::of_process().finish();
  return exit_as.signal != 0 ? guard::die_of(exit_as.signal) : exit_as.exit_code;
}

}  // namespace
}  // namespace redlock::cli

int main(int argc, char** argv) {
  return redlock::cli::run_main(argc, argv);
}
