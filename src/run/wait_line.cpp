#include "run/wait_line.hpp"

#include <unistd.h>

#include <string>

#include "output/standard_error.hpp"
#include "output/terminal.hpp"

namespace redlock::run {
namespace {

/// ECMA-48: erase to the end of the line.
constexpr std::string_view erase_rest = "\x1b[K";

}  // namespace

WaitLine::WaitLine(pid_t job_group)
    : job_group_(job_group), can_draw_(output::can_draw_on(STDERR_FILENO)) {}

WaitLine::~WaitLine() {
  if (drawn_ && in_foreground())
    output::StandardError::of_process().draw(std::string("\r").append(erase_rest));
}

bool WaitLine::in_foreground() const {
  return ::tcgetpgrp(STDERR_FILENO) == job_group_;
}

bool WaitLine::draw(std::string_view text) {
  if (!can_draw_ || !in_foreground()) return false;
  drawn_ = true;
  // After text in the last column some terminals move to the next line.
  const std::string_view shown =
      cut_to_columns(text, output::terminal_size(STDERR_FILENO).columns - 1);
  output::StandardError::of_process().draw(std::string("\r").append(shown).append(erase_rest));
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
