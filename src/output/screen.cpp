#include "output/screen.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "output/console.hpp"

namespace redlock::output {
namespace {

// ECMA-48, and xterm's private modes; terminals ignore private modes that they do not know.
constexpr std::string_view enter_own_screen = "\x1b[?1049h";
constexpr std::string_view leave_own_screen = "\x1b[?1049l";
constexpr std::string_view hide_cursor = "\x1b[?25l";
constexpr std::string_view show_cursor = "\x1b[?25h";
constexpr std::string_view home = "\x1b[H";
constexpr std::string_view erase_rest_of_line = "\x1b[K";
constexpr std::string_view erase_below = "\x1b[J";

}  // namespace

void Screen::enter() {
  entered_ = true;
  termios modes{};
  if (::tcgetattr(STDIN_FILENO, &modes) != 0) return;  // no terminal
  modes_ = modes;
  modes.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  (void)::tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

std::optional<char> Screen::key(int fd) const {
  char key = 0;
  if (!in_foreground() || ::read(fd, &key, 1) != 1) return std::nullopt;
  return key;
}

bool Screen::draw(const std::vector<std::string>& lines) {
  if (!in_foreground()) return true;
  std::string text;
  if (!entered_) {
    enter();
    text.append(enter_own_screen).append(hide_cursor).append(home).append(erase_below);
  }
  text += home;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // Erase first: after text in the last column, some terminals would erase that column.
    text.append(i == 0 ? "" : "\r\n").append(erase_rest_of_line).append(lines[i]);
  }
  if (lines.size() < size().rows) text.append("\r\n").append(erase_below);
  return output::write_all(fd_, text);
}

void Screen::leave() {
  if (!entered_) return;
  entered_ = false;
  // In the background the terminal belongs to another job, and the shell has set its modes.
  if (modes_ && in_foreground()) (void)::tcsetattr(STDIN_FILENO, TCSANOW, &*modes_);
  modes_.reset();
  // A terminal without an alternate screen continues below what was drawn last.
  const std::string last_line = fmt::format("\x1b[{};1H", size().rows);
  (void)output::write_all(
      fd_,
      last_line + std::string(erase_rest_of_line).append(show_cursor).append(leave_own_screen));
}

bool Screen::in_foreground() const {
  const pid_t group = ::tcgetpgrp(fd_);
  // A negative group means that it is not our controlling terminal, so no other job uses it.
  return group < 0 || group == ::getpgrp();
}

}  // namespace redlock::output
