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

/// How a command is reached in one call, before anything is looked up. Written by the holder process, read by both guards.
struct CommandTarget {
  /// As kill(2) takes it: minus the process group that the command leads, or its pid where it is in a group of others.
  /// 0: there is none, or it has been reaped, and its number may be anybody's.
  std::atomic<pid_t> kill_argument{0};

  /// The process group that the command was given for itself, for as long as anything of it may live; 0: none.
  std::atomic<pid_t> own_group{0};
};

/// Everything that descends from this process, double-forked and setsid descendants included: from construction on this process
/// is a PR_SET_CHILD_SUBREAPER, so orphans below it come to it. It must have no children but guards and what the command's
/// processes leave to it: whoever has others keeps them out (Shield). Construct it before starting the command; one per process.
///
/// Signals go out in two steps. First one call reaches the command's group (and its cgroup), whatever its size and however little
/// CPU we get. Then a walk through /proc reaches the rest, each process as soon as it is found.
class ProcessTree {
 public:
  /// `target` must outlive this. It is cleared before the command is reaped.
  explicit ProcessTree(CommandTarget& target);

  /// What descends from us lives in this cgroup, too: from now on kill() kills it as one, and not all is dead before it is empty.
  /// It must outlive this.
  void confine_to(const Cgroup& cgroup) noexcept { cgroup_ = &cgroup; }

  /// The tree is what descends from this child alone, not from us.
  void set_root(pid_t root) noexcept { root_ = root; }

  /// A child that is a guard of ours and none of the command's processes: only kill_and_reap() touches it, but what descends from
  /// it belongs to the tree.
  void add_guard(pid_t pid) { guards_.insert(pid); }

  /// Sends `signal` to every descendant once, parents before children; SIGTERM and the like are followed by SIGCONT, since a
  /// stopped process acts on nothing before that. Ends when `until` has come. A process that may not be signalled (setuid) is left
  /// out.
  void signal(int signal, Instant until) const;

  /// SIGKILL to every descendant but the guards. Ends when `until` has come; each process is killed as it is found, and `progress`,
  /// if there is one, is set to the boot clock's nanoseconds meanwhile.
  void kill(Instant until, std::atomic<std::int64_t>* progress = nullptr);

  /// kill(), guards included, and reaps what is dead. True when nothing of ours is left: that is proof of death (waitpid says
  /// ECHILD). Notification again, after a short wait, until true. The statuses of what it reaps, the command's perhaps among them, are kept
  /// for reap(). Never blocks: what may not be killed (setuid) means false.
  bool kill_and_reap(Instant until, std::atomic<std::int64_t>* progress = nullptr);

  /// Whether the last kill() or kill_and_reap() got on: it reaped something, killed what none before
  /// it had found, or ended before it had found all; and it met nothing that it may not kill. While
  /// it does, what lives is not beyond being killed.
  [[nodiscard]] bool got_on() const noexcept { return got_on_; }

  /// Reaps one ended child without blocking, the command itself or an orphan; nothing when none has ended. Each status comes once.
  std::optional<Ended> reap();

  /// Living descendants without guards, parents before children; zombies are not living. One that changes its parent while we look
  /// may be missed: none seen is no proof of death, nothing_left() is.
  [[nodiscard]] std::vector<pid_t> descendants() const;

  /// Whether all are dead and reaped, as the kernel knows it. Not below a root.
  [[nodiscard]] bool nothing_left() const;

 private:
  enum class Guards { spared, killed };

  /// Whether it killed some for the first time, or `until` came before it had found all; false when
  /// it met one that it may not kill.
  bool kill_all(Guards guards, Instant until, std::atomic<std::int64_t>* progress);
  [[nodiscard]] std::vector<pid_t> roots() const;
  void retire_target();
  [[nodiscard]] std::optional<Ended> reap_next();

  CommandTarget& target_;
  pid_t root_ = 0;  ///< 0: this process
  std::set<pid_t> guards_;
  const Cgroup* cgroup_ = nullptr;
  std::set<pid_t> killed_;  ///< sent KILL, and not reaped yet
  bool refused_ = false;    ///< the last walk met one that may not be killed (setuid)
  bool got_on_ = false;
  std::deque<Ended> ended_;  ///< reaped by kill_and_reap(), not handed out yet
};

}  // namespace redlock::child
