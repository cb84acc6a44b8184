#include "output/status_line.hpp"

#include <unistd.h>

#include <string>

#include "output/standard_error.hpp"
#include "output/terminal.hpp"
#include "support/columns.hpp"

namespace redlock::output {
namespace {

/// ECMA-48: erase to the end of the line.
constexpr std::string_view erase_rest = "\x1b[K";

}  // namespace

StatusLine::StatusLine(pid_t job_group)
    : job_group_(job_group), can_draw_(output::can_draw_on(STDERR_FILENO)) {}

StatusLine::~StatusLine() {
  erase();
}

void StatusLine::erase() {
  if (drawn_ && in_foreground())
    output::StandardError::of_process().draw(std::string("\r").append(erase_rest));
}

bool StatusLine::in_foreground() const {
  return ::tcgetpgrp(STDERR_FILENO) == job_group_;
}

std::size_t StatusLine::width() const {
  return output::terminal_size(STDERR_FILENO).columns - 1;
}

bool StatusLine::draw(std::string_view text) {
  if (!can_draw_ || !in_foreground()) return false;
  drawn_ = true;
  // Leave the last column empty: after text in it, some terminals move to the next line.
  const std::string shown = shortened_to_columns(text, width());
  output::StandardError::of_process().draw(std::string("\r").append(shown).append(erase_rest));
  return true;
}

}  // namespace redlock::output
