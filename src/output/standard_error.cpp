#include "output/standard_error.hpp"

#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <system_error>

#include "output/console.hpp"
#include "output/one_line.hpp"
#include "output/terminal.hpp"
#include "support/brief_write.hpp"
#include "support/text.hpp"

namespace redlock::output {
namespace {

/// How long the last line waits for its reader: long enough for a pager that is being scrolled, too
/// short for one that was abandoned.
constexpr Milliseconds max_last_wait{1000};

std::string_view level_word(int level) {
  switch (level) {
    case LOG_ERR:
      return "error";
    case LOG_NOTICE:
      return "notice";
    case LOG_INFO:
      return "info";
    default:
      return "debug";
  }
}

}  // namespace

StandardError& StandardError::of_process() {
  static StandardError standard_error;
  return standard_error;
}

void StandardError::draw(std::string_view text) {
  (void)try_to_write(text);
}

void StandardError::write(int level, std::string_view lines) {
  if (try_to_write(with_dropped(dropped_, lines))) return clear_dropped();
  ++dropped_;
  if (!kept_.empty() && level > kept_level_) return;
  kept_ = lines;
  kept_level_ = level;
}

void StandardError::message(int level, std::string_view text) {
  write(level, line(level, text));
}

std::string StandardError::line(int level, std::string_view text) const {
  if (!json_) return fmt::format("redlock-cli: {}\n", text);
  return one_line({{"level", level_word(level)}, {"message", to_valid_utf8(text)}}) + "\n";
}

std::string StandardError::with_dropped(std::size_t dropped, std::string_view lines) const {
  if (dropped == 0) return std::string(lines);
  return line(LOG_NOTICE, dropped_text(dropped, "stderr was not read")) + std::string(lines);
}

void StandardError::finish() {
  if (!writer_) return;
  const std::string last = dropped_ == 0 ? "" : with_dropped(dropped_ - 1, kept_);
  (void)writer_->write_within(max_last_wait, lines_for(STDERR_FILENO, last));
  clear_dropped();
}

void StandardError::clear_dropped() noexcept {
  dropped_ = 0;
  kept_.clear();
}

bool StandardError::try_to_write(std::string_view lines) {
  const std::string text = lines_for(STDERR_FILENO, lines);
  if (LineWriter* const to = writer()) return to->write(text);
  return write_briefly(STDERR_FILENO, text) == static_cast<ssize_t>(text.size());
}

/// Null if descriptor 2 is closed or cannot be duplicated.
LineWriter* StandardError::writer() {
  try {
    if (!writer_) writer_.emplace(STDERR_FILENO);
  } catch (const std::system_error&) {
    return nullptr;
  }
  return &*writer_;
}

bool write_last(int fd, std::string_view text) {
  try {
    return LineWriter(fd).write_within(max_last_wait, text);
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace redlock::output
