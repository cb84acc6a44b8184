#include "cli/main.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "child/signals.hpp"
#include "cli/command_error.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/lease_file.hpp"
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

Finish dispatch(const Settings& settings, const child::InheritedSignals& inherited) {
  switch (settings.line().command->bit) {
    case for_run:
      return run_command(settings, inherited);
    case for_acquire:
      return acquire_command(settings, inherited);
    case for_extend:
      return extend_command(settings);
    case for_release:
      return release_command(settings);
    case for_status:
      return status_command(settings);
  }
  throw CommandError(ExitCode::internal, "a command without a function");
}

/// `eval "$(redlock-cli acquire --export …)"` must fail whatever went wrong.
void fail_the_eval(const std::vector<std::string>& arguments, int exit_code) {
  const bool exports = std::find(arguments.begin(), arguments.end(), "--export") != arguments.end();
  if (exports && !arguments.empty() && arguments.front() == "acquire") write_all(STDOUT_FILENO, failed_export_line(exit_code));
}

Finish run_program(const std::vector<std::string>& arguments, const child::InheritedSignals& inherited) {
  const Console console(/*quiet=*/false, /*verbosity=*/0);
  ExitCode code = ExitCode::internal;
  try {
    auto line = parse_command_line(arguments);
    if (!line) return {};
    const Settings settings(std::move(*line));
    return dispatch(settings, inherited);
  } catch (const CommandError& error) {
    code = error.code();
    console.error(error.what());
  } catch (const std::system_error& error) {
    code = ExitCode::os_error;
    console.error(escape_for_terminal(error.what()));
  } catch (const std::exception& error) {
    console.error("internal error: " + escape_for_terminal(error.what()));
  }
  fail_the_eval(arguments, to_int(code));
  return Finish{to_int(code)};
}

}  // namespace

int main(int argc, char** argv) {
  const child::InheritedSignals inherited = child::InheritedSignals::capture();
  occupy_standard_descriptors();
  const Finish finish = run_program(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), inherited);
  return finish.signal != 0 ? child::die_of(finish.signal) : finish.exit_code;
}

}  // namespace redlock::cli
