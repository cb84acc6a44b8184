#pragma once

#include <string_view>

namespace redlock::output {

/// Writes everything to the descriptor; false with errno when it cannot. Handles EINTR and partial
/// writes.
bool write_all(int fd, std::string_view bytes);

/// Messages to stderr, one line each: `redlock-cli: TEXT`. A stderr that is closed, a broken pipe or
/// on a full disk never changes what the program does, but writing may block (a paused terminal, a
/// full pipe): never write between a loss and the stop signal. Texts are safe for a terminal: what
/// comes from outside is escaped by escape_for_terminal(). `--json` silences no message.
class Console {
 public:
  Console(bool quiet, unsigned verbosity) : quiet_(quiet), verbosity_(verbosity) {}

  /// What the user must know: shown even with -q.
  void error(std::string_view text) const;

  /// What the user may want to know: not shown with -q.
  void notice(std::string_view text) const;

  /// Only with -v, or -vv.
  void detail(std::string_view text) const;
  void debug(std::string_view text) const;

  [[nodiscard]] bool is_quiet() const noexcept { return quiet_; }
  [[nodiscard]] bool is_verbose() const noexcept { return verbosity_ > 0; }

 private:
  bool quiet_;
  unsigned verbosity_;
};

}  // namespace redlock::output
