#pragma once

#include <signal.h>
#include <sys/types.h>

#include "child/shared_page.hpp"

/// Job control (^Z, fg, bg) while a command of ours runs. The holder process's half is in
/// FrontLink; what becomes of a lock whose job is paused before the command starts is in
/// run/holder.cpp. A process that job control has stopped is called paused here: stopping a command
/// means telling it to end. The command comes first. When it is paused, the front process pauses as
/// it did, and no sooner: otherwise the shell would reclaim the terminal while a full-screen
/// program still restores it. When one of them is continued, so is the other.
///
///     ^Z -> command pauses -> SIGCHLD to the holder process -> page, message -> front process
///     pauses
///        -> shell
///     fg -> CONT to the job: both continue
///     kill -CONT FRONT -> CONT to the command
///     kill -CONT COMMAND -> holder process -> CONT to the front process
namespace redlock::child {

/// The front process's half, for a command in its process group. Without such a command it does
/// nothing.
class FrontJobControl {
 public:
  /// `page` must outlive this.
  FrontJobControl(const SharedPage& page, bool shares_group) noexcept
      : page_(page), shares_group_(shares_group) {}

  /// From here on TSTP, TTIN and TTOU stay pending until the command has paused because of them.
  /// Those that were blocked at the start are left alone.
  void command_starts() noexcept;

  /// `signal` has paused the command. We pause by the same signal, by TSTP if it was SIGSTOP. We do
  /// not if the command runs again already: a CONT that arrives later discards the signal. Returns
  /// when we continue; at once where the kernel pauses no process (an orphaned group) or the
  /// signal is ignored. True when the command still has to be continued: a shell that suspended
  /// itself, in a group of its own; or we alone were continued.
  [[nodiscard]] bool command_paused(int signal);

  /// The pending signals were for the command, which did not pause because of them.
  void command_ended() noexcept;

  /// There was no command: the pending signals pause us now.
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

}  // namespace redlock::child
