#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "child/cgroup.hpp"
#include "support/boot_clock.hpp"

namespace redlock::child {

/// Living descendants of any processes, parents before children, without these. Those whose parents have ended are not to be found from
/// there any more. At the instant `until` the search ends with what it has found.
std::vector<pid_t> living_descendants(const std::set<pid_t>& roots, Instant until = Instant::max());

/// A process that ended: its pid and its wait status (as waitpid gives it).
struct Ended {
  pid_t pid;
  int status;
};

/// Everything that descends from this process, double-forked and setsid descendants included: from construction on this process is a
/// PR_SET_CHILD_SUBREAPER, so orphans below it come to it. Children that this process was born with (`helper & exec redlock-cli run …`)
/// are remembered at construction and never touched. Construct it before starting the command; one per process.
class ProcessTree {
 public:
  ProcessTree();

  /// What descends from us lives in this cgroup, too: from now on kill_and_reap() kills it as one, and not all is dead before it is empty.
  /// It must outlive this.
  void confine_to(const Cgroup& cgroup) noexcept { cgroup_ = &cgroup; }

  /// A child that is a guard of ours and none of the command's processes: signal() and descendants() leave it out, but not what descends
  /// from it; kill_and_reap() kills it with the rest.
  void add_guard(pid_t pid) { guards_.insert(pid); }

  /// Sends `signal` to every descendant, parents before children; SIGTERM and the like are followed by SIGCONT, since a stopped process
  /// acts on nothing before that. A process that may not be signalled (setuid) is left out; says how many got it.
  /// `spared` get none themselves, but what descends from them does.
  std::size_t signal(int signal, const std::set<pid_t>& spared = {}) const;

  /// Kills once and reaps what is dead: SIGKILL to every descendant. True when nothing of ours is left: that is proof of death
  /// (waitpid says ECHILD, or only children that we were born with remain). Call again, after a short wait, until true. The statuses of
  /// what it reaps, the command's perhaps among them, are kept for reap(). Never blocks: what may not be killed (setuid) means false.
  bool kill_and_reap();

  /// Reaps one ended child without blocking, the command itself or an orphan; nothing when none has ended. Each status comes once.
  std::optional<Ended> reap();

  /// Living descendants, those that we were born with and theirs left out, parents before children; zombies are not living.
  /// One that changes its parent while we look may be missed: none seen is no proof of death, nothing_left() is.
  [[nodiscard]] std::vector<pid_t> descendants() const;

  /// Whether all are dead and reaped, as the kernel knows it.
  [[nodiscard]] bool nothing_left() const;

 private:
  [[nodiscard]] std::optional<Ended> reap_next();
  [[nodiscard]] std::optional<Ended> reap_next_of_all() const;

  std::set<pid_t> born_with_;
  std::set<pid_t> guards_;
  const Cgroup* cgroup_ = nullptr;
  std::deque<Ended> ended_;  ///< reaped by kill_and_reap(), not handed out yet
};

}  // namespace redlock::child
