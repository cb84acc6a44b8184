#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "support/boot_clock.hpp"
#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::proc {

/// A process that is not our child, with all its descendants, for which a lease is kept (`acquire
/// --while-pid $$`). A pidfd identifies it, so that a reused pid is never mistaken for it.
///
/// A descendant whose parent has ended is known only if it was found before. A process that dies
/// while it forks would hide its last child, so it is signalled only after it was seen stopped and
/// its children were listed.
class WatchedProcess {
 public:
  /// The error is one clause for the user: there is no such process, we may not signal it, or the
  /// kernel has no pidfds (before Linux 5.3).
  static Result<WatchedProcess, std::string> open(pid_t pid);

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Whether it is PID 1 of our pid namespace, which cannot be stopped or killed from within; it
  /// receives only signals that it handles.
  [[nodiscard]] bool is_init() const noexcept { return pid_ == 1; }

  /// Readable once the process has ended.
  [[nodiscard]] int fd() const noexcept { return pidfd_.get(); }
  [[nodiscard]] bool ended() const;

  /// One step towards a tree in which no process can fork: stops the known processes that run, and
  /// finds new ones. True when all were seen stopped and no new one was found after that. Until
  /// then call it again after a moment, because stopping takes time. Does not wait for processes
  /// that we may not signal. Returns false at `until`, finished or not.
  bool hold_still(Instant until);

  /// Which processes to signal.
  enum class Reach {
    stopped,  ///< those that the last complete hold_still() saw stopped; others might fork while
              ///< they die
    known,    ///< all known descendants
  };

  /// Sends `signal`, then CONT.
  void signal(int signal, Reach reach);

  /// Finds new descendants, until `until` at most, and sends KILL to all known ones. Call it again
  /// while any lives. Returns whether it made progress: it found new ones, or ran out of time
  /// before it had found all; and there was none that we may not kill.
  bool kill(Instant until);

  /// The pids of the process and of all known descendants that live.
  [[nodiscard]] std::set<pid_t> living() const;

 private:
  WatchedProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  /// A descendant; its start time distinguishes it from a later process with the same pid.
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
  std::set<pid_t> stopped_;  ///< seen stopped by the last complete hold_still()
};

/// Why the process that started us cannot be watched, in one clause for the user.
struct NoParentProcess {
  bool may_have_ended;  ///< false: the system does not let us watch it
  std::string text;
};

/// A pidfd of the process that started us, readable once that process has ended. (PDEATHSIG would
/// report the end of the *thread* that started us.) `parent_of_us` stands for getppid(2). It is
/// called again after the pidfd was opened, because the parent may have ended in between and its
/// pid been reused.
Result<UniqueFd, NoParentProcess> watch_parent_process(pid_t (*parent_of_us)() = ::getppid);

}  // namespace redlock::proc
