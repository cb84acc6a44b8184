#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "child/cgroup.hpp"
#include "support/boot_clock.hpp"

namespace redlock::child {

/// A process that ended: its pid and its wait status (as waitpid gives it).
struct Ended {
  pid_t pid;
  int status;
};

/// How to reach a command in one system call, before any lookup. Written by the holder process,
/// read by both guards.
struct CommandTarget {
  /// As kill(2) takes it: minus the process group that the command leads, or its pid where it is in
  /// a group of others. 0: there is none, or it has been reaped, and another process may have its
  /// number.
  std::atomic<pid_t> kill_argument{0};

  /// The process group that was made for the command, for as long as any process of it may live; 0:
  /// none.
  std::atomic<pid_t> own_group{0};
};

/// All descendants of this process, double-forked and setsid ones included: from construction on
/// this process is a PR_SET_CHILD_SUBREAPER, so orphans below it are reparented to it. Its only
/// children must be guards and the command's processes: a process that has others keeps them out
/// (Shield). Construct it before starting the command; one per process.
///
/// Signals go out in two steps. First one system call reaches the command's group (and its cgroup),
/// however large it is and however little CPU we get. Then a walk through /proc reaches the rest,
/// each process as soon as it is found.
class ProcessTree {
 public:
  /// `target` must outlive this. It is cleared before the command is reaped.
  explicit ProcessTree(CommandTarget& target);

  /// Our descendants live in this cgroup, too: from now on kill() kills it as one, and all is not
  /// dead before it is empty. It must outlive this.
  void confine_to(const Cgroup& cgroup) noexcept { cgroup_ = &cgroup; }

  /// The tree consists of the descendants of this child alone, not of all of ours.
  void set_root(pid_t root) noexcept { root_ = root; }

  /// That child was reaped: what was below it cannot be found any more.
  void root_is_gone() noexcept { root_ = gone; }

  /// A descendant that is a guard of ours and none of the command's processes: only kill_and_reap()
  /// touches it, but its descendants belong to the tree.
  void add_guard(pid_t pid) { guards_.insert(pid); }

  /// From now on kill() kills it, too.
  void remove_guard(pid_t pid) { guards_.erase(pid); }

  /// Until it is reaped, signal() and kill() leave out this descendant and what is below it, and
  /// kill() does not kill the cgroup, which it is in; 0: none.
  void spare(pid_t pid) noexcept { spared_ = pid; }

  /// Sends `signal` to every descendant once, parents before children. SIGTERM and the like are
  /// followed by SIGCONT, since a stopped process acts on nothing before that. Ends at the instant
  /// `until`. A process that may not be signalled (setuid) is left out, and when the command has
  /// been reaped, so is `spared_group`.
  void signal(int signal, Instant until, pid_t spared_group = 0) const;

  /// The living descendants in this process group, without guards. Processes of others in it are
  /// left out.
  [[nodiscard]] std::vector<pid_t> members_of(pid_t group) const;

  /// Sends SIGKILL to every descendant but the guards. Ends at the instant `until`. Each process is
  /// killed as soon as it is found, and `progress`, if there is one, is set to the boot clock's
  /// nanoseconds meanwhile.
  void kill(Instant until, std::atomic<std::int64_t>* progress = nullptr);

  /// Does kill(), guards included, and reaps the dead. True when no process of ours is left: that
  /// is proof of death (waitpid says ECHILD, or all that is left are dead processes that another
  /// process traces and has not waited for). Call it again, after a short wait, until it returns
  /// true. The statuses of the processes that it reaps, perhaps the command's among them, are kept
  /// for reap(). Never blocks: a process that may not be killed (setuid) means false.
  bool kill_and_reap(Instant until, std::atomic<std::int64_t>* progress = nullptr);

  /// Whether the last kill() or kill_and_reap() made progress: it reaped a process, killed one that
  /// no earlier call had found, or ended before it had found all; and it found none that it may not
  /// kill. While it makes progress, the survivors may still be killable.
  [[nodiscard]] bool got_on() const noexcept { return got_on_; }

  /// Reaps one ended child without blocking, the command itself or an orphan; nothing when none has
  /// ended. Each status is returned once.
  std::optional<Ended> reap();

  /// The living descendants without guards, parents before children; zombies are not living. A
  /// process that changes its parent meanwhile may be missed: an empty result is no proof of death,
  /// nothing_left() is.
  [[nodiscard]] std::vector<pid_t> descendants() const;

  /// Whether all are dead, as the kernel knows it, and reaped but for those whose tracer has not
  /// waited for them. Not below a root.
  [[nodiscard]] bool nothing_left() const;

 private:
  enum class Guards { spared, killed };

  /// Whether it killed some for the first time, or `until` passed before it had found all; false
  /// when it found one that it may not kill.
  bool kill_all(Guards guards, Instant until, std::atomic<std::int64_t>* progress);
  [[nodiscard]] std::vector<pid_t> roots() const;
  void retire_target();
  [[nodiscard]] std::optional<Ended> reap_next();

  CommandTarget& target_;
  static constexpr pid_t gone = -1;

  pid_t root_ = 0;  ///< 0: this process; gone: none
  std::set<pid_t> guards_;
  pid_t spared_ = 0;
  const Cgroup* cgroup_ = nullptr;
  std::set<pid_t> killed_;  ///< sent KILL, and not reaped yet
  bool refused_ = false;    ///< the last walk found one that may not be killed (setuid)
  bool got_on_ = false;
  std::deque<Ended> ended_;  ///< reaped by kill_and_reap(), not handed out yet
};

}  // namespace redlock::child
