#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
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
/// it is returned, so killing it at once loses none of them.
///
/// A process whose parent dies during the walk becomes a child of one whose children were read
/// before. So the walk is repeated until it finds nothing new, from the last process up to the
/// roots, as orphans only move up. If it is complete and no process that it returned lives, none
/// lived at its end: a process that it missed was forked or adopted later, by a living one.
class DescendantWalk {
 public:
  enum class Passes {
    until_stable,
    one  ///< for a caller that walks again and again
  };

  /// The roots themselves are not returned. The walk ends at `until`, complete or not. It leaves
  /// out `spared` and its descendants; 0: none.
  explicit DescendantWalk(const std::vector<pid_t>& roots, Passes passes = Passes::until_stable,
                          Instant until = Instant::max(), pid_t spared = 0);

  /// The next descendant; nullopt when none is left, or `until` has passed.
  std::optional<pid_t> next();

  /// Whether the last descendant was missed by the first pass.
  [[nodiscard]] bool was_missed() const noexcept { return passes_done_ > 0; }

  /// False when the walk ended early, could not read everything, or found new descendants in every
  /// pass up to a limit. Then others may live.
  [[nodiscard]] bool complete() const noexcept { return complete_; }

 private:
  enum class Source { none, children_files, scan };

  void scan();
  void read_children(pid_t pid);
  bool find_missed();

  std::vector<pid_t> roots_;
  Passes passes_;
  unsigned passes_done_ = 0;
  Instant until_;
  Source source_ = Source::none;
  std::vector<pid_t> found_;
  std::size_t next_ = 0;
  std::unordered_set<pid_t> seen_;  ///< guards against a loop when a pid is reused during the walk
  std::vector<std::pair<pid_t, pid_t>> scanned_;  ///< parent and child, sorted; for Source::scan
  bool complete_ = true;
};

/// The living descendants of these processes, parents before children, without the roots
/// themselves. A process whose parent has ended, and that no process below a root has adopted, is
/// not found. At `until` it returns those found so far.
std::vector<pid_t> living_descendants(const std::vector<pid_t>& roots,
                                      Instant until = Instant::max());

/// Whether it is certain that no descendant of these processes lives, or none for which `counts` is
/// true.
bool none_lives(const std::vector<pid_t>& roots,
                const std::function<bool(pid_t)>& counts = nullptr);

}  // namespace redlock::proc
