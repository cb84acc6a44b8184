#pragma once

#include <sys/types.h>

#include <set>
#include <string>

#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::child {

/// A process that is none of our children, and all that descends from it: what a lease can be kept for (`acquire --while-pid $$`). It is
/// known by a pidfd, so that a pid that is used anew is never mistaken for it.
class WatchedProcess {
 public:
  /// The error is one clause for the user: there is no such process, it may not be signalled, or the kernel has no pidfds (before 5.3).
  static Result<WatchedProcess, std::string> open(pid_t pid);

  /// Readable once the process has ended.
  [[nodiscard]] int fd() const noexcept { return pidfd_.get(); }
  [[nodiscard]] bool ended() const;

  /// Stops the process and all that descends from it, so that nothing new is forked, and remembers it all.
  void hold_still();

  /// Sends `signal` and CONT to the process and its descendants, held still meanwhile, and remembers them: whoever loses his parent is
  /// found no other way.
  void signal(int signal);

  /// Kills the process and all that descends from it, also what was met before and has lost its parent since. True when nothing of it
  /// lives; call again until then.
  bool kill();

  /// Whether the process lives, or anything that was met.
  [[nodiscard]] bool anything_lives() const;

 private:
  WatchedProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  void remember_everybody();
  void send(int signal) const;
  [[nodiscard]] std::set<pid_t> living() const;

  /// A process that we met, told from a later one with the same pid by the time it started.
  struct Met {
    pid_t pid;
    unsigned long long started;
    friend auto operator<=>(const Met&, const Met&) = default;
  };
  [[nodiscard]] static bool lives(const Met& met);

  pid_t pid_;
  UniqueFd pidfd_;
  std::set<Met> met_;  ///< descendants
};

}  // namespace redlock::child
