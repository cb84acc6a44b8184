#include "cli/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "cli/command_error.hpp"
#include "cli/options.hpp"

namespace redlock::cli {
namespace {

void say(std::string_view text) {
  std::string line = "redlock-cli: ";
  line += text;
  line += '\n';
  (void)write_all(STDERR_FILENO, line);
}

}  // namespace

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void print_result(std::string_view text) {
  if (!write_all(STDOUT_FILENO, text))
    throw CommandError(ExitCode::os_error, fmt::format("cannot write to stdout: {}", std::strerror(errno)));
}

void Console::error(std::string_view text) const {
  say(text);
}

void Console::notice(std::string_view text) const {
  if (!quiet_) say(text);
}

void Console::detail(std::string_view text) const {
  if (!quiet_ && verbosity_ >= 1) say(text);
}

void Console::debug(std::string_view text) const {
  if (!quiet_ && verbosity_ >= 2) say(text);
}

Console make_console(const Settings& settings) {
  return Console(settings.get(option::quiet), settings.get(option::verbose));
}

}  // namespace redlock::cli
