#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <unordered_set>
#include <vector>

#include "support/boot_clock.hpp"

namespace redlock::proc {

/// Whether the processes of a command can be found: /proc is mounted, uses our pids
/// (proc_is_ours()), and shows either lists of children or at least this process.
bool proc_shows_descendants();

/// Walks through all descendants of some processes, one process at a time, so that the caller can
/// act on each as soon as it is found. Uses the best source that the kernel offers:
/// /proc/PID/task/TID/children, else a scan of /proc/PID/stat.
///
/// Parents come before their children, zombies included. The children of a process are read before
/// it is returned, so killing it at once loses none of them. A process that changes its parent
/// meanwhile may be missed: an empty walk is no proof of death.
class DescendantWalk {
 public:
  /// The roots themselves are not returned. The walk ends at `until`, complete or not. It leaves
  /// out `spared` and its descendants; 0: none.
  explicit DescendantWalk(const std::vector<pid_t>& roots, Instant until = Instant::max(),
                          pid_t spared = 0);

  /// The next descendant; nullopt when none is left, or `until` has passed.
  std::optional<pid_t> next();

  /// False when the walk ended early, or could not read everything.
  [[nodiscard]] bool complete() const noexcept { return complete_; }

 private:
  enum class Source { none, children_files, scan };

  void read_children(pid_t pid);

  Instant until_;
  Source source_ = Source::none;
  std::vector<pid_t> found_;
  std::size_t next_ = 0;
  std::unordered_set<pid_t> seen_;  ///< guards against a loop when a pid is reused during the walk
  std::vector<std::pair<pid_t, pid_t>> scanned_;  ///< parent and child, sorted; for Source::scan
  bool complete_ = true;
};

/// Whether all children of this process are dead, kept by the kernel only because the process that
/// traces them (a debugger) has not waited for them. Then all its descendants are dead. Stops at
/// the first living one. False when /proc does not show them.
bool only_dead_children();

/// The living descendants of these processes, parents before children, without the roots
/// themselves. A process whose parent has ended is no longer below a root and is not found. At
/// `until` it returns those found so far.
std::vector<pid_t> living_descendants(const std::vector<pid_t>& roots,
                                      Instant until = Instant::max());

}  // namespace redlock::proc
