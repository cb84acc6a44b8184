#pragma once

#include <signal.h>
#include <sys/types.h>

#include "guard/shared_page.hpp"

/// Job control (^Z, fg, bg) while our command runs. The holder process's half is in FrontLink;
/// commands/holder.cpp handles a job that is paused before the command starts. A process stopped by
/// job control is called paused here, because stopping a command means making it end.
///
/// The command pauses first. The front process follows with the same signal, and no sooner:
/// otherwise the shell would reclaim the terminal while a full-screen program is still restoring
/// it. When one of them is continued, so is the other.
///
///     ^Z -> command pauses -> SIGCHLD to the holder process -> page, message
///        -> front process pauses -> shell
///     fg -> CONT to the job: both continue
///     kill -CONT FRONT -> CONT to the command
///     kill -CONT COMMAND -> holder process -> CONT to the front process
namespace redlock::guard {

/// The front process's half, for a command in its process group. Without such a command all
/// functions do nothing.
class FrontJobControl {
 public:
  /// `page` must outlive this.
  FrontJobControl(const SharedPage& page, bool shares_group) noexcept
      : page_(page), shares_group_(shares_group) {}

  /// From here on TSTP, TTIN and TTOU stay pending until the command has paused because of them.
  /// Those that were blocked from the start stay blocked.
  void command_starts() noexcept;

  /// `signal` has paused the command. We pause by the same signal, or by TSTP if it was SIGSTOP,
  /// unless the command runs again already. Returns when we are continued; returns at once where
  /// the kernel does not pause us (an orphaned group) or the signal is ignored. True when the
  /// caller must continue the command: it is a shell that suspended itself in a group of its own,
  /// or we alone were continued.
  [[nodiscard]] bool command_paused(int signal);

  /// Discards the pending signals: they were for the command, which did not pause because of them.
  void command_ended() noexcept;

  /// The command was not started: the pending signals pause us now.
  void back_to_waiting() noexcept { release_signals(); }

 private:
  void pause(int signal);
  [[nodiscard]] bool is_command_paused() const;
  [[nodiscard]] bool continued_alone() const;
  void hold_signals() noexcept;
  void release_signals() noexcept;
  void discard_signals() noexcept;

  const SharedPage& page_;
  bool shares_group_;
  bool holds_ = false;
  sigset_t mask_before_{};
};

}  // namespace redlock::guard
