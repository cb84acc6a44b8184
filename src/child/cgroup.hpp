#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::child {

/// The directory of the cgroup (version 2) that a process is in, from the text of its
/// /proc/self/mountinfo and /proc/self/cgroup. The hierarchy may be mounted anywhere, and a mount
/// may show only a part of it. Nothing when no mount shows the process's own cgroup.
std::optional<std::string> find_cgroup(std::string_view mountinfo, std::string_view membership);

/// A cgroup (version 2) of the command's own, below ours. All descendants of the processes put into
/// it are in it, wherever they have moved in the process tree. The kernel kills all of them at
/// once: between two forks, frozen, or running as another user. It is made before the fork of the
/// holder process, so the front process and the holder process both have it, and either can kill
/// and remove it alone.
class Cgroup {
 public:
  /// Makes a cgroup. First removes empty ones beside it that were abandoned: their process was
  /// killed before it had a holder process. Puts a short-lived child into the new cgroup, because a
  /// cgroup that may be made is not always one that may be entered, and waits for that child;
  /// SIGCHLD must not be ignored. The error is one clause that says why not, and what to do.
  static Result<Cgroup, std::string> create();

  /// Takes over an existing cgroup.
  explicit Cgroup(std::string directory);

  /// Calls remove().
  ~Cgroup();
  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&&) = delete;

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }

  /// Moves a process with its threads, but not its children, into the cgroup. Returns 0, or an
  /// errno.
  [[nodiscard]] int add(pid_t pid) const noexcept;

  /// Kills every process in it and below. Does not wait: populated() is false once they are dead.
  /// Before Linux 5.14 it kills one process at a time, while they are frozen.
  void kill() const;

  /// Whether a process in it or below it lives; true also when that cannot be determined.
  [[nodiscard]] bool populated() const noexcept;

  /// Removes it and the empty cgroups below it. Processes that still live in it move back to the
  /// cgroup that they would have been in without us. Safe to repeat, in the front process and in
  /// the holder process. A nested cgroup of another program that is not empty prevents the removal.
  void remove() const noexcept;

 private:
  std::string directory_;  ///< empty: moved from
  UniqueFd procs_;         ///< open from the start: killing works without a free descriptor
  UniqueFd kill_;          ///< nothing where the kernel has no cgroup.kill
  UniqueFd events_;
  UniqueFd claim_;  ///< locked with flock(2) while the front or holder process lives
};

}  // namespace redlock::child
