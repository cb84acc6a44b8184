#include "cli/main.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "child/signals.hpp"
#include "run/command_error.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "run/lease_file.hpp"
#include "output/json.hpp"
#include "output/outcome.hpp"
#include "cli/run_options.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

/// A descriptor 0, 1 or 2 that is closed would be given to the next socket, and messages would go to a server. The stand-ins can neither be
/// read nor written, so they fail as closed ones do, and close-on-exec gives the command what we were given.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    const int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", mode | O_CLOEXEC) < 0) return;  // no /dev: nothing better to be had
  }
}

run::Finish dispatch(const Settings& settings, const run::Start& start) {
  switch (settings.line().command->bit) {
    case for_run:
      return run_command(settings, start);
    case for_acquire:
      return acquire_command(settings, start);
    case for_extend:
      return extend_command(settings);
    case for_release:
      return release_command(settings);
    case for_status:
      return status_command(settings);
    case for_doctor:
      return doctor_command(settings);
  }
  throw CommandError(ExitCode::internal, "a command without a function");
}

/// Whether `word` stands among our own options.
bool has_option(const std::vector<std::string>& arguments, std::string_view word) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  return std::find(arguments.begin(), dashes, word) != dashes;
}

/// The descriptor that --status-fd, or its variable, names; nothing when that makes no sense.
std::optional<int> status_fd_among(const std::vector<std::string>& arguments) {
  constexpr std::string_view flag = "--status-fd";
  const char* const variable = std::getenv("REDLOCK_STATUS_FD");
  std::string text = variable != nullptr ? variable : "";
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  for (auto word = arguments.begin(); word != dashes; ++word) {
    if (*word == flag && word + 1 != dashes) text = *(word + 1);
    if (word->starts_with(flag) && word->substr(flag.size()).starts_with('=')) text = word->substr(flag.size() + 1);
  }
  int fd = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (error != std::errc() || end != text.data() + text.size() || fd < 0 || !is_given_for_writing(fd)) return std::nullopt;
  return fd;
}

/// An error before a command began its work, for whoever reads our output: `--json` and `--status-fd` get an object, and
/// `eval "$(redlock-cli acquire --export …)"` fails whatever went wrong. The settings may be what could not be read, so the words count.
void tell_readers(const std::vector<std::string>& arguments, ExitCode code, std::string_view text) {
  const std::string command = arguments.empty() ? std::string() : arguments.front();
  output::Outcome outcome = output::outcome_of(command, {}, output::result_of(code), std::string(text));
  outcome.exit_code = to_int(code);
  if (has_option(arguments, "--json")) {
    output::write_all(command == "run" ? STDERR_FILENO : STDOUT_FILENO, output::outcome_json(outcome) + "\n");
  }
  if (command == "run") {
    output::RunReport report;
    report.outcome = outcome;
    if (const auto fd = status_fd_among(arguments)) output::write_all(*fd, output::run_json(report) + "\n");
  }
  if (command == "acquire" && has_option(arguments, "--export")) output::write_all(STDOUT_FILENO, run::failed_export_line(to_int(code)));
}

run::Finish run_program(const std::vector<std::string>& arguments, const run::Start& start) {
  ExitCode code = ExitCode::internal;
  std::string text;
  try {
    auto line = parse_command_line(arguments);
    if (!line) return {};
    const Settings settings(std::move(*line));
    return dispatch(settings, start);
  } catch (const CommandError& error) {
    code = error.code();
    text = error.what();
  } catch (const std::system_error& error) {
    code = ExitCode::os_error;
    text = escape_for_terminal(error.what());
  } catch (const std::exception& error) {
    text = "internal error: " + escape_for_terminal(error.what());
  }
  output::Console(/*quiet=*/false, /*verbosity=*/0).error(text);
  tell_readers(arguments, code, text);
  return run::Finish{to_int(code)};
}

}  // namespace

int main(int argc, char** argv) {
  const child::InheritedSignals inherited = child::InheritedSignals::capture();
  ::signal(SIGPIPE, SIG_IGN);  // a closed stdout or stderr is an error like others, not the end of us
  occupy_standard_descriptors();
  const run::Finish finish = run_program(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), run::Start{inherited, argc, argv});
  return finish.signal != 0 ? child::die_of(finish.signal) : finish.exit_code;
}

}  // namespace redlock::cli
