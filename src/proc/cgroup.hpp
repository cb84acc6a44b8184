#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::proc {

/// The directory of the cgroup (version 2) that a process is in, found in the text of its
/// /proc/self/mountinfo and /proc/self/cgroup. The hierarchy may be mounted anywhere, and a mount
/// may show only a part of it. Nullopt when no mount shows the process's own cgroup.
std::optional<std::string> find_cgroup(std::string_view mountinfo, std::string_view membership);

/// A cgroup (version 2) for the command alone, below ours. It contains all descendants of the
/// processes put into it, wherever they have moved in the process tree. The kernel kills all of
/// them at once, even those that are forking, frozen, or running as another user. It is made before
/// the holder process is forked, so the front process and the holder process both have it, and
/// either can kill and remove it on its own.
class Cgroup {
 public:
  /// Makes a cgroup. First removes abandoned empty ones beside it, whose process was killed before
  /// it had forked a holder process. Then puts a short-lived child into the new cgroup and waits
  /// for it, because permission to make a cgroup does not imply permission to enter it; SIGCHLD
  /// must not be ignored. The error is one clause that names the cause and the remedy.
  static Result<Cgroup, std::string> create();

  /// Takes over an existing cgroup.
  explicit Cgroup(std::string directory);

  /// Calls remove().
  ~Cgroup();
  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&&) = delete;

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }

  /// Moves a process with its threads, but without its children, into the cgroup. Returns 0 or an
  /// errno value.
  [[nodiscard]] int add(pid_t pid) const noexcept;

  /// Sends SIGKILL to every process in it and below, and does not wait: populated() is false once
  /// they are dead. Before Linux 5.14 the processes are frozen and killed one by one.
  void kill() const;

  /// Whether any process in it or below it is alive; true also when that cannot be determined.
  [[nodiscard]] bool populated() const noexcept;

  /// Removes it and the empty cgroups below it. Moves processes that still live in it back to the
  /// cgroup that they would have been in without us. May be called repeatedly, in the front process
  /// and in the holder process. A non-empty cgroup that another program made below it prevents the
  /// removal.
  void remove() const noexcept;

 private:
  std::string directory_;  ///< empty after a move
  UniqueFd procs_;         ///< opened in advance, so that no descriptor is needed to kill
  UniqueFd kill_;          ///< empty where the kernel has no cgroup.kill
  UniqueFd events_;
  UniqueFd claim_;  ///< locked with flock(2) while the front process or the holder process lives
};

}  // namespace redlock::proc
