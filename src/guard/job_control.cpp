#include "guard/job_control.hpp"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <ctime>
#include <optional>
#include <string_view>

#include "proc/process_stat.hpp"
#include "support/unique_fd.hpp"

namespace redlock::guard {
namespace {

sigset_t pause_signals() noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTSTP, SIGTTIN, SIGTTOU}) sigaddset(&set, signal);
  return set;
}

UniqueFd controlling_terminal() {
  UniqueFd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  // In a chroot or a container the device file may be missing.
  if (!terminal && ::tcgetsid(STDERR_FILENO) == ::getsid(0))
    terminal.reset(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  return terminal;
}

}  // namespace

void FrontJobControl::command_starts() noexcept {
  if (shares_group_) hold_signals();
}

bool FrontJobControl::command_paused(int signal) {
  if (!shares_group_) return false;
  const pid_t group = page_.paused_group;
  const bool is_foreign = group != 0 && group != ::getpgrp();
  const UniqueFd terminal = is_foreign ? controlling_terminal() : UniqueFd();
  const bool had_terminal = terminal && ::tcgetpgrp(terminal.get()) == group;

  pause(signal == SIGSTOP ? SIGTSTP : signal);

  // The command is a shell that suspended itself in a group of its own, but `fg` gave the terminal
  // and CONT only to our group: hand the terminal over.
  if (had_terminal && ::tcgetpgrp(terminal.get()) == ::getpgrp())
    ::tcsetpgrp(terminal.get(), group);
  return is_foreign || continued_alone();
}

/// Returns when we continue.
void FrontJobControl::pause(int signal) {
  ::raise(signal);  // stays pending, as those of the terminal do
  if (!is_command_paused()) discard_signals();
  release_signals();  // we pause here
  hold_signals();
}

/// Also asks the kernel, which knows first: after `fg` we may get a CPU before the holder process
/// has cleared the page.
bool FrontJobControl::is_command_paused() const {
  if (page_.paused_group == 0) return false;
  const pid_t command = page_.target.command;
  if (command == 0) return false;  // reaped
  const auto stat = proc::proc_is_ours() ? proc::read_process_stat(command) : std::nullopt;
  if (!stat) return true;
  // A paused process may also be traced (t), or its first thread may have ended (Z).
  constexpr std::string_view running = "RSD";
  return stat->living && running.find(stat->state) == std::string_view::npos;
}

/// A CONT that came after our pause is still pending, because SignalGate reads it later. If none is
/// pending, the kernel did not pause us, so the command was meant to be stopped alone.
bool FrontJobControl::continued_alone() const {
  const auto still_paused = [this] {
    if (!is_command_paused()) return false;
    // A later stop signal would have discarded it.
    sigset_t pending;
    ::sigpending(&pending);
    return sigismember(&pending, SIGCONT) == 1;
  };
  if (!still_paused()) return false;
  // A CONT for the whole job may not have reached the command yet.
  const timespec group_delivery{.tv_sec = 0, .tv_nsec = 10'000'000};
  ::nanosleep(&group_delivery, nullptr);
  return still_paused();
}

void FrontJobControl::command_ended() noexcept {
  discard_signals();
  release_signals();
}

void FrontJobControl::hold_signals() noexcept {
  if (holds_) return;
  const sigset_t pauses = pause_signals();
  ::pthread_sigmask(SIG_BLOCK, &pauses, &mask_before_);
  holds_ = true;
}

void FrontJobControl::release_signals() noexcept {
  if (!holds_) return;
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  holds_ = false;
}

void FrontJobControl::discard_signals() noexcept {
  const sigset_t pauses = pause_signals();
  const timespec at_once{};
  while (holds_ && ::sigtimedwait(&pauses, nullptr, &at_once) > 0) {
  }
}

}  // namespace redlock::guard
