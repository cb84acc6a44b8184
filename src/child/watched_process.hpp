#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "support/boot_clock.hpp"
#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::child {

/// A process that is none of our children, and all its descendants: what a lease can be kept for
/// (`acquire --while-pid $$`). It is identified by a pidfd, so that a reused pid is never mistaken
/// for it.
///
/// A descendant whose parent has ended can be found only if it was seen before. A parent that dies
/// while it forks would hide its last child, so it is signalled only once it was seen stopped, and
/// its children were listed after that.
class WatchedProcess {
 public:
  /// The error is one clause for the user: there is no such process, it may not be signalled, or
  /// the kernel has no pidfds (before 5.3).
  static Result<WatchedProcess, std::string> open(pid_t pid);

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Process 1 of our pid namespace cannot be stopped or killed from within, but it gets a signal
  /// that it handles.
  [[nodiscard]] bool is_init() const noexcept { return pid_ == 1; }

  /// Readable once the process has ended.
  [[nodiscard]] int fd() const noexcept { return pidfd_.get(); }
  [[nodiscard]] bool ended() const;

  /// One step towards a tree in which no process can fork: stops the known processes that run, and
  /// finds new ones. True when all were seen stopped and no new one was found after that. Until
  /// then call it again after a moment, as stopping takes its time. Processes that may not be
  /// signalled are not waited for. At the instant `until` the step ends where it is: false.
  bool hold_still(Instant until);

  /// The processes that a signal is for.
  enum class Reach {
    stopped,  ///< those that the last complete hold_still() saw stopped: others might fork as they
              ///< die
    known,    ///< all known descendants
  };

  /// Sends `signal` and CONT.
  void signal(int signal, Reach reach);

  /// Finds new descendants until the instant `until`, and sends KILL to all known ones. Call it
  /// again while any lives. Returns whether it made progress: some were new, or `until` passed
  /// before all were found, and there was none that may not be killed.
  bool kill(Instant until);

  /// The pids of the process and of all known descendants that live.
  [[nodiscard]] std::set<pid_t> living() const;

 private:
  WatchedProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  /// A descendant that was found, told from a later process with the same pid by its start time.
  struct Descendant {
    pid_t pid;
    unsigned long long started;
    friend auto operator<=>(const Descendant&, const Descendant&) = default;
  };
  [[nodiscard]] static bool lives(const Descendant& descendant);

  std::vector<pid_t> discover(const std::set<pid_t>& known, Instant until);
  [[nodiscard]] bool send(pid_t pid, int signal) const;

  pid_t pid_;
  UniqueFd pidfd_;
  std::set<Descendant> known_;
  std::set<pid_t> stopped_;  ///< by the last complete hold_still()
};

}  // namespace redlock::child
