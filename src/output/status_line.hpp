#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>

namespace redlock::output {

/// A line on the terminal that shows what we wait for, redrawn in place. Drawn only if stderr is a
/// capable terminal (not TERM=dumb), and only while our job is in its foreground: after ^Z the
/// terminal belongs to another job.
class StatusLine {
 public:
  /// `job_group`: the process group of the job that waits.
  explicit StatusLine(pid_t job_group);

  /// Clears the status line.
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// How many columns the line may have.
  [[nodiscard]] std::size_t width() const;

  /// Shows `text`, cut to width(). False: it is not shown, as there is no such terminal or we are
  /// in its background; then the caller may have to report it in another way.
  bool draw(std::string_view text);

  /// Clears the status line, if it was drawn.
  void erase();

 private:
  [[nodiscard]] bool in_foreground() const;

  pid_t job_group_;
  bool can_draw_;
  bool drawn_ = false;  ///< there is a line that must be cleared
};

}  // namespace redlock::output
