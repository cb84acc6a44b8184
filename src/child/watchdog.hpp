#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "child/cgroup.hpp"
#include "child/shared_page.hpp"
#include "child/stop_plan.hpp"
#include "child/tree.hpp"
#include "support/boot_clock.hpp"

namespace redlock::child {

/// How it all ended, as the front process must pass it on.
struct Verdict {
  enum class Source {
    report,          ///< the holder process reported it
    not_forked,      ///< there never was one: its shield could not fork it
    holder_died,     ///< the holder process was killed; the command was stopped
    holder_stopped,  ///< another process stopped it (SIGSTOP); the front process stopped the
                     ///< command
    holder_starved,  ///< it was ready to run but got no CPU; the front process stopped the command
    holder_hung,     ///< it waited for something other than its command; the front process stopped
                     ///< the command
  };
  Source source = Source::report;
  bool command_began = false;
  bool unkillable = false;  ///< a process of the command could not be killed
  Duration late{};          ///< how long after the deadline all of it was seen dead; zero: in
                            ///< time
  std::vector<pid_t> left;  ///< unkillable: the processes that still live
  int exit_code = 0;
  int signal = 0;      ///< not 0: to die of
  std::string report;  ///< what --status-fd gets
};

/// The front process's guard over the holder process. If that does not stop the command in time, we
/// do, a quarter of the margin later. While the holder process is killing, we help it. Only one
/// that does not begin to kill for another quarter of the margin, or makes no progress for half of
/// it, is killed, too, and its descendants become ours to reap.
class Watchdog {
 public:
  /// `page` must outlive it, and so must `cgroup`: that of the command, or null.
  Watchdog(StopPlan plan, SharedPage& page, const Cgroup* cgroup);

  /// `child`: the holder process, or its shield. Call it once, before all that follows.
  void watch_over(pid_t child, bool shielded);

  /// The witness, a child that is no part of the command.
  void add_witness(pid_t pid) {
    witness_ = pid;
    tree_.add_guard(pid);
  }

  /// The holder process; 0 while its shield has not forked it. Its parent has not reaped it: its
  /// pid is still its own.
  [[nodiscard]] pid_t holder() const;

  /// After SIGCHLD. Behind a shield: continues it if it was stopped, since all wait for its end,
  /// and reaps the children that are none of ours, of whose end no other process could learn.
  void tend_children();

  /// Does what is due. A verdict when it had to kill the holder process.
  std::optional<Verdict> watch(Instant now);

  /// When watch() has something to do; Instant::max(): not before the page changes.
  [[nodiscard]] Instant next_instant() const;

  /// Kills the holder process, if it has not died, with all its descendants, and confirms their
  /// death.
  Verdict take_over(Verdict::Source source);

  /// Waits for the end of the child, and continues it if it is stopped; at once when it was reaped.
  void wait_for_holder();

 private:
  [[nodiscard]] bool kill_and_confirm(Instant until);
  [[nodiscard]] Verdict::Source state_of_holder() const;
  [[nodiscard]] Instant terminate_at(Instant deadline) const {
    return kill_at(deadline) - plan_.grace;
  }
  [[nodiscard]] Instant kill_at(Instant deadline) const;

  StopPlan plan_;
  SharedPage& page_;
  ProcessTree tree_;
  pid_t child_ = 0;  ///< the holder process, or its shield
  bool shielded_ = false;
  pid_t witness_ = 0;        ///< 0: none
  bool reaped_ = false;      ///< whether child_ was reaped
  Instant helped_;           ///< when we last helped the holder process to kill
  bool terminated_ = false;  ///< the command got its stop signal from us
};

}  // namespace redlock::child
