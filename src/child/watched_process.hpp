#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "support/boot_clock.hpp"
#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::child {

/// A process that is none of our children, and all that descends from it: what a lease can be kept
/// for (`acquire --while-pid $$`). It is known by a pidfd, so that a pid that is used anew is never
/// mistaken for it.
///
/// A process whose parent has ended is found no other way than by having been met before. A parent
/// that dies while it forks would take its last child out of sight, so it is signalled only once it
/// was seen stopped, and its children were looked for after that.
class WatchedProcess {
 public:
  /// The error is one clause for the user: there is no such process, it may not be signalled, or
  /// the kernel has no pidfds (before 5.3).
  static Result<WatchedProcess, std::string> open(pid_t pid);

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Readable once the process has ended.
  [[nodiscard]] int fd() const noexcept { return pidfd_.get(); }
  [[nodiscard]] bool ended() const;

  /// One step towards a tree in which nothing can fork: stops what was met and runs, and meets who
  /// is new. True when everything was seen stopped before nothing new was found; until then call
  /// again after a moment, as stopping takes its time. Processes that may not be signalled are not
  /// waited for. At the instant `until` the step ends where it is: false.
  bool hold_still(Instant until);

  /// Whom a signal is for.
  enum class Reach {
    stopped,  ///< those that the last complete hold_still() saw stopped: the others might fork as
              ///< they die
    met,      ///< all that was met
  };

  /// Sends `signal` and CONT.
  void signal(int signal, Reach reach);

  /// Looks for who is new until the instant `until`, and sends KILL to all that was met. Notification again
  /// while anything lives. Whether it got on: some were new, or `until` came before all were found,
  /// and there was none that may not be killed.
  bool kill(Instant until);

  /// Of the process and of all that was met.
  [[nodiscard]] std::set<pid_t> living() const;

 private:
  WatchedProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  /// A process that we met, told from a later one with the same pid by the time it started.
  struct Met {
    pid_t pid;
    unsigned long long started;
    friend auto operator<=>(const Met&, const Met&) = default;
  };
  [[nodiscard]] static bool lives(const Met& met);

  std::vector<pid_t> meet_new(const std::set<pid_t>& known, Instant until);
  [[nodiscard]] bool send(pid_t pid, int signal) const;

  pid_t pid_;
  UniqueFd pidfd_;
  std::set<Met> met_;        ///< descendants
  std::set<pid_t> stopped_;  ///< by the last complete hold_still()
};

}  // namespace redlock::child
