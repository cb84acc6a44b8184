#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "proc/cgroup.hpp"
#include "support/boot_clock.hpp"

namespace redlock::guard {

/// A process that ended: its pid and its wait status (as waitpid gives it).
struct Ended {
  pid_t pid;
  int status;
};

/// With what a signal reaches the command without a walk through /proc. Written by the holder
/// process, read by both guards.
struct CommandTarget {
  /// The command's pid. 0: there is none, or it has been reaped and its pid may be reused.
  std::atomic<pid_t> command{0};

  /// The process group that was made for the command, while any of its members may live; 0: none.
  std::atomic<pid_t> own_group{0};
};

/// Sends a signal as kill(2) does. SIGTERM and the like are followed by SIGCONT, because a stopped
/// process does not handle them before.
void send_signal(pid_t kill_argument, int signal) noexcept;

/// What one system call reaches of the command, wherever it is now: the group that was made for it,
/// or that it leads since it left that (setsid); or it alone.
class CommandReach {
 public:
  explicit CommandReach(const CommandTarget& target) noexcept;

  /// Sends a signal to all of it, as kill(2) does. TERM and the like are followed by CONT if
  /// `wakes`, because a stopped process does not handle them before.
  void send(int signal, bool wakes) const noexcept;

  /// Whether the process is part of it now.
  [[nodiscard]] bool includes(pid_t pid) const noexcept;

  /// The group; 0: it is the command alone.
  [[nodiscard]] pid_t group() const noexcept { return group_; }

 private:
  pid_t command_ = 0;  ///< 0: it has been reaped
  pid_t group_ = 0;
};

/// All descendants of this process, double-forked and setsid ones included: from construction on
/// this process is a PR_SET_CHILD_SUBREAPER, so orphans below it are reparented to it. Its only
/// children must be guards and processes of the command; a Shield keeps foreign ones out. Construct
/// it before starting the command, once per process.
///
/// Signals are sent in two steps. First one system call reaches the command's group (and another
/// kills its cgroup), however large it is and however little CPU we get. Then a walk through /proc
/// reaches the rest, each process as soon as it is found.
class ProcessTree {
 public:
  /// `target` must outlive this. It is cleared before the command is reaped.
  explicit ProcessTree(CommandTarget& target);

  /// The command lives in this cgroup, which must outlive this. From now on kill() also kills the
  /// cgroup as a whole, and the tree is not dead before the cgroup is empty.
  void confine_to(const proc::Cgroup& cgroup) noexcept { cgroup_ = &cgroup; }

  /// Restricts the tree to the descendants of this child.
  void set_root(pid_t root) noexcept { root_ = root; }

  /// That child was reaped: its descendants can no longer be found.
  void root_is_gone() noexcept { root_ = gone; }

  /// Registers a descendant that is a guard of ours. Only kill_and_reap() signals it, but its
  /// descendants belong to the tree.
  void add_guard(pid_t pid) { guards_.insert(pid); }

  /// From now on kill() kills it like any other descendant.
  void remove_guard(pid_t pid) { guards_.erase(pid); }

  /// Until it is reaped, signal() and kill() skip this descendant and those below it, and kill()
  /// does not kill the cgroup, because it is in there; 0: none.
  void spare(pid_t pid) noexcept { spared_ = pid; }

  /// Sends `signal` to every descendant once that was there before, parents before children, as
  /// send_signal() does. Ends at `until`. Skips a process that we may not signal (setuid), and,
  /// once the command has been reaped, those that `is_spared` says; null: none.
  void signal(int signal, Instant until,
              const std::function<bool(pid_t)>& is_spared = nullptr) const;

  /// The same for every descendant but `reached`, which has the signal already.
  void signal_all_but(pid_t reached, int signal, Instant until) const;

  /// The living descendants in this process group, without guards.
  [[nodiscard]] std::vector<pid_t> members_of(pid_t group) const;

  /// Sends SIGKILL to every descendant except the guards, each as soon as it is found. Ends at
  /// `until`. Meanwhile it keeps `progress`, unless null, at the boot clock's current nanoseconds.
  void kill(Instant until, std::atomic<std::int64_t>* progress = nullptr);

  /// Kills as kill() does, guards included, and reaps the dead. True when no process of ours is
  /// left, which is proof of death: waitpid fails with ECHILD, or all remaining children are dead
  /// and held only by another process that traces them. Call it again, after a short wait, until it
  /// returns true. The statuses of the processes that it reaps, possibly including the command's,
  /// are kept for reap(). Never blocks; returns false while a process lives that we may not kill
  /// (setuid).
  bool kill_and_reap(Instant until, std::atomic<std::int64_t>* progress = nullptr);

  /// Whether the last kill() or kill_and_reap() made progress: it reaped a process, killed one that
  /// no earlier call had found, or ran out of time before it had found all; and it found none that
  /// we may not kill. While there is progress, the survivors may still be killable.
  [[nodiscard]] bool made_progress() const noexcept { return made_progress_; }

  /// Reaps one ended child without blocking, the command itself or an orphan; nullopt when none has
  /// ended. Each status is returned once.
  std::optional<Ended> reap();

  /// The living descendants without guards, parents before children; zombies are not living. For
  /// messages: an empty result is no proof of death.
  [[nodiscard]] std::vector<pid_t> descendants() const;

  /// Whether it is certain that no descendant but guards lives, or none in this group.
  [[nodiscard]] bool no_descendant_lives() const;
  [[nodiscard]] bool no_member_lives(pid_t group) const;

  /// Whether the kernel confirms that all are dead, and reaped except for those whose tracer has
  /// not waited for them. Not to be used after set_root().
  [[nodiscard]] bool nothing_left() const;

 private:
  enum class Guards { spared, killed };

  /// Returns whether it killed a process for the first time, or `until` passed before it had found
  /// all; false if it found one that we may not kill.
  bool kill_all(Guards guards, Instant until, std::atomic<std::int64_t>* progress);
  void signal_found(int signal, Instant until, const std::function<bool(pid_t)>& is_reached) const;
  [[nodiscard]] std::vector<pid_t> roots() const;
  [[nodiscard]] std::optional<Ended> reap_next();

  CommandTarget& target_;
  static constexpr pid_t gone = -1;

  pid_t root_ = 0;  ///< 0: this process; gone: none
  std::set<pid_t> guards_;
  pid_t spared_ = 0;
  const proc::Cgroup* cgroup_ = nullptr;
  std::set<pid_t> killed_;  ///< sent KILL and not reaped yet
  bool refused_ = false;    ///< the last walk found one that we may not kill (setuid)
  bool made_progress_ = false;
  std::deque<Ended> ended_;  ///< reaped by kill_and_reap(), not yet returned by reap()
};

}  // namespace redlock::guard
