#include "run/wait_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "output/console.hpp"

namespace redlock::run {
namespace {

constexpr std::size_t usual_columns = 80;

/// ECMA-48: erase to the end of the line.
constexpr std::string_view erase_rest = "\x1b[K";

std::size_t columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return usual_columns;
  return size.ws_col;
}

bool is_able_terminal() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb" &&
         term[0] != '\0';
}

}  // namespace

WaitLine::WaitLine(pid_t job_group) : job_group_(job_group), can_draw_(is_able_terminal()) {}

WaitLine::~WaitLine() {
  if (drawn_ && in_foreground())
    (void)output::write_all(STDERR_FILENO, std::string("\r").append(erase_rest));
}

bool WaitLine::in_foreground() const {
  return ::tcgetpgrp(STDERR_FILENO) == job_group_;
}

bool WaitLine::draw(std::string_view text) {
  if (!can_draw_ || !in_foreground()) return false;
  drawn_ = true;
  // After text in the last column some terminals move to the next line.
  const std::string_view shown = cut_to_columns(text, columns() - 1);
  (void)output::write_all(STDERR_FILENO, std::string("\r").append(shown).append(erase_rest));
  return true;
}

std::string_view cut_to_columns(std::string_view text, std::size_t columns) {
  constexpr auto is_continuation = [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
  };
  std::size_t used = 0;
  std::size_t end = 0;
  while (end < text.size()) {
    used += static_cast<unsigned char>(text[end]) < 0x80 ? 1 : 2;
    if (used > columns) break;
    ++end;
    while (end < text.size() && is_continuation(text[end])) ++end;
  }
  return text.substr(0, end);
}

}  // namespace redlock::run
