#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <unordered_set>
#include <vector>

#include "support/boot_clock.hpp"

namespace redlock::child {

/// Whether the processes of a command can be found here: /proc is mounted, uses the same pids as
/// kill(2) does (seen from an inner pid namespace, the numbers of an outer /proc are other
/// processes), and lists children or at least ourselves.
bool proc_shows_descendants();

/// Walks through all descendants of some processes, one process at a time, so that the caller can
/// act on each as soon as it is found. Uses the best source that the kernel has:
/// /proc/PID/task/TID/children, else a scan of /proc/PID/stat.
///
/// Parents come before their children, zombies included. The children of a process are read before
/// it is returned, so killing it at once loses none of them. A process that changes its parent
/// meanwhile may be missed: an empty walk is no proof of death.
class DescendantWalk {
 public:
  /// The roots themselves are not returned. The walk ends at the instant `until`, complete or not.
  /// It leaves out `spared`, and what is below it; 0: none.
  explicit DescendantWalk(const std::vector<pid_t>& roots, Instant until = Instant::max(),
                          pid_t spared = 0);

  /// The next descendant; nothing when there is none left, or `until` has passed.
  std::optional<pid_t> next();

  /// False when the walk ended before it found all, or could not read everything.
  [[nodiscard]] bool complete() const noexcept { return complete_; }

 private:
  enum class Source { none, children_files, scan };

  void read_children(pid_t pid);

  Instant until_;
  Source source_ = Source::none;
  std::vector<pid_t> found_;
  std::size_t next_ = 0;
  std::unordered_set<pid_t> seen_;  ///< a pid reused during the walk must not cause a loop
  std::vector<std::pair<pid_t, pid_t>> scanned_;  ///< parent and child, sorted; for Source::scan
  bool complete_ = true;
};

/// Whether this process has no children but dead ones, which the kernel keeps because the process
/// that traces them (a debugger) has not waited for them. Then all its descendants are dead. Looks
/// no further than the first that lives. False when /proc does not show it.
bool only_dead_children();

/// The living descendants of these processes, parents before children, without these. Processes
/// whose parents have ended cannot be found this way any more. At the instant `until` it returns
/// those found so far.
std::vector<pid_t> living_descendants(const std::vector<pid_t>& roots,
                                      Instant until = Instant::max());

}  // namespace redlock::child
