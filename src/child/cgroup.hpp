#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::child {

/// The directory of the cgroup (version 2) that a process is in, from what it reads in /proc/self/mountinfo and /proc/self/cgroup: the
/// hierarchy may be mounted anywhere, and a mount may show only a part of it. Nothing when no mount shows the process's own.
std::optional<std::string> find_cgroup(std::string_view mountinfo, std::string_view membership);

/// A cgroup (version 2) of the command's own, below ours. Whatever descends from what was put in is in it, wherever it has gone in the tree
/// of processes, and the kernel kills all of it at once: between two forks, frozen, or running as another user.
/// Front and holder both have it (it is made before they part), so that either alone can kill and remove it.
class Cgroup {
 public:
  /// Removes empty ones beside it that nobody is left to remove: their process was killed before it
  /// had a holder.
  /// Makes one, and has a short-lived child put into it: a cgroup that may be made is not always
  /// one that may be entered. Waits for that child; SIGCHLD must not be ignored. Else one clause
  /// that says why not, and what to do.
  static Result<Cgroup, std::string> create();

  /// Takes over a cgroup that is there.
  explicit Cgroup(std::string directory);

  /// remove()s it.
  ~Cgroup();
  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&&) = delete;

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }

  /// Moves a process into it, with its threads, not its children. 0, or why not (errno).
  [[nodiscard]] int add(pid_t pid) const noexcept;

  /// Kills everything in it and below. Does not wait: populated() tells. Before Linux 5.14 one process at a time, while they are frozen.
  void kill() const;

  /// Whether something in it or below it lives; also when that cannot be known.
  [[nodiscard]] bool populated() const noexcept;

  /// Removes it, and empty ones that were made below. What still lives in it goes back to where it would have been without us. Again and
  /// again without harm, in front and in the holder. A cgroup of another's below that is not empty keeps it from being removed.
  void remove() const noexcept;

 private:
  std::string directory_;  ///< empty: moved from
  UniqueFd procs_;         ///< open from the start: no lack of descriptors can keep us from killing
  UniqueFd kill_;          ///< nothing where the kernel has no cgroup.kill
  UniqueFd events_;
  UniqueFd claim_;  ///< locked with flock(2) as long as front or the holder lives
};

}  // namespace redlock::child
