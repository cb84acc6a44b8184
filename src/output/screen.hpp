#pragma once

#include <termios.h>

#include <optional>
#include <string>
#include <vector>

#include "output/terminal.hpp"

namespace redlock::output {

/// A terminal on which screens are drawn in place, one after the other. Uses the alternate screen
/// if the terminal has one, so that the previous content comes back at the end. Keys are not echoed
/// meanwhile. Draws only while our job is in the terminal's foreground.
class Screen {
 public:
  explicit Screen(int fd) : fd_(fd) {}

  /// Restores the terminal, with its cursor.
  ~Screen() { leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  [[nodiscard]] output::TerminalSize size() const { return output::terminal_size(fd_); }

  /// Replaces what is shown. There may be at most size().rows lines of size().columns columns,
  /// without control characters. False, with errno, when it cannot write.
  bool draw(const std::vector<std::string>& lines);

  /// Restores the terminal, as the destructor does; the next draw() begins anew.
  void leave();

  /// The next key that was typed; nullopt when none can be read, or our job is in the background.
  [[nodiscard]] std::optional<char> key(int fd) const;

 private:
  [[nodiscard]] bool in_foreground() const;
  void enter();

  int fd_;
  bool entered_ = false;
  std::optional<termios> modes_;  ///< the original modes of the terminal at stdin
};

}  // namespace redlock::output
