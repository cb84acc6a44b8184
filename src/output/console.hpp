#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace redlock::output {

/// Writes everything to the descriptor; false with errno when it cannot. Handles EINTR and partial
/// writes.
bool write_all(int fd, std::string_view bytes);

/// `3 messages were dropped: WHY`.
std::string dropped_text(std::size_t count, std::string_view why);

/// Messages to stderr, one line each: `redlock-cli: TEXT`, and to the system log where that is
/// wanted. StandardError says what becomes of a line that is not read; the system log is never
/// waited for. Texts are safe for a terminal: what comes from outside is escaped by
/// escape_for_terminal() (support/text.hpp). `--json` silences no message; of `run` it makes each a
/// line of JSON.
class Console {
 public:
  /// `to_syslog`: the system log gets the messages, too, whether quiet or not.
  Console(bool quiet, unsigned verbosity, bool to_syslog = false)
      : quiet_(quiet), verbosity_(verbosity), to_syslog_(to_syslog) {}

  /// What the user must know: shown even with -q.
  void error(std::string_view text) const;

  /// What the user may want to know: not shown with -q.
  void notice(std::string_view text) const;

  /// For the audit trail: to the system log, also without --syslog. What stops a command or breaks
  /// a lock, and at whose request, can be found there.
  void audit(std::string_view text) const;

  /// Only with -v, or -vv.
  void detail(std::string_view text) const;
  void debug(std::string_view text) const;

  [[nodiscard]] bool is_quiet() const noexcept { return quiet_; }
  /// Whether nothing but errors gets anywhere.
  [[nodiscard]] bool is_silent() const noexcept { return quiet_ && !to_syslog_; }
  [[nodiscard]] bool is_verbose() const noexcept { return verbosity_ > 0; }

 private:
  void say(int level, bool shown, std::string_view text) const;

  bool quiet_;
  unsigned verbosity_;
  bool to_syslog_;
};

}  // namespace redlock::output
