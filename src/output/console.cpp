#include "output/console.hpp"

#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "output/standard_error.hpp"
#include "support/syslog.hpp"

namespace redlock::output {
namespace {

/// Counts the messages that a busy or hanging log did not accept, and reports the number with the
/// next one, as StandardError does.
void write_to_log(int level, std::string_view text) {
  static std::size_t dropped = 0;
  if (dropped > 0 &&
      write_to_syslog(LOG_NOTICE, dropped_text(dropped, "the system log was not read")))
    dropped = 0;
  if (!write_to_syslog(level, text)) ++dropped;
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

std::string dropped_text(std::size_t count, std::string_view why) {
  return std::to_string(count) + (count == 1 ? " message was" : " messages were") +
         " dropped: " + std::string(why);
}

void Console::write(int level, bool shown, std::string_view text) const {
  if (to_syslog_) write_to_log(level, text);
  if (!shown) return;
  StandardError::of_process().message(level, text);
}

void Console::error(std::string_view text) const {
  write(LOG_ERR, true, text);
}

void Console::notice(std::string_view text) const {
  write(LOG_NOTICE, !quiet_, text);
}

void Console::audit(std::string_view text) const {
  // With --syslog the caller's message has already reached the log.
  if (!to_syslog_) log(text);
}

void Console::log(std::string_view text) const {
  write_to_log(LOG_NOTICE, text);
}

void Console::detail(std::string_view text) const {
  if (verbosity_ >= 1) write(LOG_INFO, !quiet_, text);
}

void Console::debug(std::string_view text) const {
  if (verbosity_ >= 2) write(LOG_DEBUG, !quiet_, text);
}

}  // namespace redlock::output
