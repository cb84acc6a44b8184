#pragma once

#include <termios.h>

#include <optional>
#include <string>
#include <vector>

#include "output/terminal.hpp"

namespace redlock::run {

/// A terminal on which one screen after another is drawn in place. It has a screen of its own for
/// that where it can, so that what was there before comes back. Keys are not echoed meanwhile.
/// Draws only while our job is in the terminal's foreground.
class Screen {
 public:
  explicit Screen(int fd) : fd_(fd) {}

  /// Shows the terminal as it was before, with its cursor.
  ~Screen() { leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  [[nodiscard]] output::TerminalSize size() const { return output::terminal_size(fd_); }

  /// Replaces what is shown. No more lines than size().rows, none wider than size().columns, and
  /// nothing in them for the terminal to act on. False with errno when it cannot write.
  bool draw(const std::vector<std::string>& lines);

  /// The same as the destructor; the next draw() begins anew.
  void leave();

  /// The next key that was typed, if it can be read now; nullopt when our job is in the background.
  [[nodiscard]] std::optional<char> key() const;

 private:
  [[nodiscard]] bool in_foreground() const;
  void enter();

  int fd_;
  bool entered_ = false;
  std::optional<termios> modes_;  ///< of the terminal at stdin, before
};

}  // namespace redlock::run
