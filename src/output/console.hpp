#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace redlock::output {

/// Writes all bytes to the descriptor. Returns false with errno set on failure. Handles EINTR and
/// partial writes.
bool write_all(int fd, std::string_view bytes);

/// `3 messages were dropped: WHY`.
std::string dropped_text(std::size_t count, std::string_view why);

/// Writes messages to stderr, one line each: `redlock-cli: TEXT`, and to the system log if
/// requested. StandardError defines when a line is dropped; a busy system log is never waited for.
/// Callers pass text that is safe for a terminal: untrusted text goes through
/// escape_for_terminal() (support/text.hpp). `--json` does not silence messages; with `run` each
/// becomes a line of JSON.
class Console {
 public:
  /// `to_syslog`: messages also go to the system log, even with `quiet`.
  Console(bool quiet, unsigned verbosity, bool to_syslog = false)
      : quiet_(quiet), verbosity_(verbosity), to_syslog_(to_syslog) {}

  /// An error: shown even with -q.
  void error(std::string_view text) const;

  /// A notice: not shown with -q.
  void notice(std::string_view text) const;

  /// An entry of the audit trail: goes to the system log even without --syslog. It records every
  /// stop request and broken lock, with the user who requested it.
  void audit(std::string_view text) const;

  /// To the system log alone, for what another output shows the user.
  void log(std::string_view text) const;

  /// Details, shown with -v; debug messages, shown with -vv.
  void detail(std::string_view text) const;
  void debug(std::string_view text) const;

  [[nodiscard]] bool is_quiet() const noexcept { return quiet_; }
  /// Whether only errors are written anywhere.
  [[nodiscard]] bool is_silent() const noexcept { return quiet_ && !to_syslog_; }
  [[nodiscard]] bool is_verbose() const noexcept { return verbosity_ > 0; }

 private:
  void write(int level, bool shown, std::string_view text) const;

  bool quiet_;
  unsigned verbosity_;
  bool to_syslog_;
};

}  // namespace redlock::output
