#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/stop_plan.hpp"
#include "core/stop_schedule.hpp"
#include "guard/shared_page.hpp"
#include "guard/tree.hpp"
#include "proc/cgroup.hpp"
#include "support/boot_clock.hpp"

namespace redlock::guard {

/// How the holder process and its command ended, for the front process to report.
struct HolderExit {
  enum class Source {
    report,          ///< the holder process reported it
    not_forked,      ///< the shield could not fork it
    holder_died,     ///< the holder process was killed; the command was stopped
    holder_stopped,  ///< another process stopped it (SIGSTOP); the front process stopped the
                     ///< command
    holder_starved,  ///< it was ready to run but got no CPU; the front process stopped the command
    holder_hung,     ///< it waited for something other than its command; the front process stopped
                     ///< the command
  };
  Source source = Source::report;
  bool command_began = false;
  bool unkillable = false;  ///< some process of the command could not be killed
  Duration late{};  ///< how long after the deadline the whole command was seen dead; zero: in time
  std::vector<pid_t> left;  ///< if unkillable: the processes that still live
  int exit_code = 0;
  int signal = 0;      ///< not 0: the signal to die of
  std::string report;  ///< the text for --status-fd
};

/// Guards the holder process in the front process. If the holder process does not stop the command
/// in time, the watchdog does: it is the second guard of the StopSchedule. While the holder process
/// is killing, the watchdog helps it. When it must replace the holder process, it kills that, too,
/// and the descendants become ours to reap.
class Watchdog {
 public:
  /// `cgroup`: the command's, or null. It and `page` must outlive this.
  Watchdog(StopPlan plan, SharedPage& page, const proc::Cgroup* cgroup);

  /// `child`: the holder process, or its shield. Call it once, before any function below.
  void watch_over(pid_t child, bool shielded);

  /// Registers the witness, a child that is not part of the command.
  void add_witness(pid_t pid) {
    witness_ = pid;
    tree_.add_guard(pid);
  }

  /// The pid of the holder process; 0 while the shield has not forked it. It cannot have been
  /// reused, because the process has not been reaped.
  [[nodiscard]] pid_t holder() const;

  /// Call it after SIGCHLD. If there is a shield, continues it when it was stopped, because its end
  /// is waited for, and reaps foreign children, which no other process can reap.
  void tend_children();

  /// Does what is due at `now`. Returns how it ended if it had to kill the holder process; else
  /// nullopt.
  std::optional<HolderExit> watch(Instant now);

  /// When to call watch() next; Instant::max(): not before the page changes.
  [[nodiscard]] Instant next_instant();

  /// Kills the holder process, unless it is dead, and all its descendants, and waits until they are
  /// seen dead or count as unkillable.
  HolderExit take_over(HolderExit::Source source);

  /// Waits for the end of the child and reaps it; continues it if it is stopped. Returns at once if
  /// it was reaped already.
  void wait_for_holder();

 private:
  void read_page();
  [[nodiscard]] bool kill_and_confirm(Instant until);
  [[nodiscard]] HolderExit::Source state_of_holder() const;

  StopPlan plan_;
  SharedPage& page_;
  StopSchedule schedule_;
  ProcessTree tree_;
  pid_t child_ = 0;  ///< the holder process, or its shield
  bool shielded_ = false;
  pid_t witness_ = 0;    ///< 0: none
  bool reaped_ = false;  ///< whether child_ was reaped
};

}  // namespace redlock::guard
