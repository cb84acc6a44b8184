#pragma once

#include <sys/types.h>

#include <string_view>

namespace redlock::run {

/// The line on the terminal that shows what we wait for, drawn over itself. Only where stderr is a terminal that can do so (not
/// TERM=dumb), and only while our job is in its foreground: after ^Z the terminal is somebody else's.
class WaitLine {
 public:
  /// `job_group`: the process group of the job that waits.
  explicit WaitLine(pid_t job_group);

  /// Takes the line away.
  ~WaitLine();
  WaitLine(const WaitLine&) = delete;
  WaitLine& operator=(const WaitLine&) = delete;

  /// Shows `text`. False where there is no such terminal: then it must be said otherwise.
  bool draw(std::string_view text);

 private:
  [[nodiscard]] bool in_foreground() const;

  pid_t job_group_;
  bool can_draw_;
  bool drawn_ = false;  ///< there is something to take away
};

/// The part of `text` that has room in so many columns; what is wider than ASCII counts as two.
std::string_view cut_to_columns(std::string_view text, std::size_t columns);

}  // namespace redlock::run
