#include "output/console.hpp"

#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "support/syslog.hpp"

namespace redlock::output {
bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void Console::say(int level, bool shown, std::string_view text) const {
  if (to_syslog_) (void)write_to_syslog(level, text);
  if (!shown) return;
  std::string line = "redlock-cli: ";
  line += text;
  line += '\n';
  (void)write_all(STDERR_FILENO, line);
}

void Console::error(std::string_view text) const {
  say(LOG_ERR, true, text);
}

void Console::notice(std::string_view text) const {
  say(LOG_NOTICE, !quiet_, text);
}

void Console::detail(std::string_view text) const {
  if (verbosity_ >= 1) say(LOG_INFO, !quiet_, text);
}

void Console::debug(std::string_view text) const {
  if (verbosity_ >= 2) say(LOG_DEBUG, !quiet_, text);
}

}  // namespace redlock::output
