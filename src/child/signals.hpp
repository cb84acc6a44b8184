#pragma once

#include <signal.h>

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "child/signal_state.hpp"
#include "support/boot_clock.hpp"
#include "support/unique_fd.hpp"

namespace redlock::child {

/// The signal mask and the ignored signals that this process was started with: a command must start
/// with exactly these. Only the dispositions of CHLD, PIPE and URG (by write_briefly()) are ever
/// changed while there may be a command; every other signal that must not act on us is blocked. So
/// those alone are recorded.
class InheritedSignals {
 public:
  /// Reads the state of this process; call it before any code changes it.
  static InheritedSignals capture();

  [[nodiscard]] bool ignored(int signal) const noexcept;
  [[nodiscard]] bool blocked(int signal) const noexcept;

  /// Restore what we changed, between fork and exec: first the dispositions (default or ignore; we
  /// install no handlers), then the mask. Both are async-signal-safe.
  void restore_dispositions() const noexcept;
  void restore_mask() const noexcept;

 private:
  sigset_t mask_{};
  bool ignored_child_ = false;
  bool ignored_pipe_ = false;
  bool ignored_urgent_ = false;
};

struct ReceivedSignal {
  int number;
  bool from_kernel;  ///< SI_KERNEL: the terminal sent it, or a limit was reached
  pid_t sender;      ///< 0 when from_kernel, or when the sender is outside of our pid namespace

  auto operator<=>(const ReceivedSignal&) const = default;
};

/// Whether this was typed: the terminal sends INT and QUIT (^C, ^\) to its whole foreground group.
/// Its HUP goes to the session leader alone, or to a group.
bool is_typed(const ReceivedSignal& signal) noexcept;

/// A signal as the front process passes it on to the holder process.
struct PassedSignal {
  int number;
  pid_t sender = 0;          ///< as in ReceivedSignal
  bool reached_job = false;  ///< it was sent to the job's process group, the command being in it
};

/// How long before its twin the signal of one kill may have been noted: whoever notes it may have
/// to wait for a CPU.
inline constexpr Milliseconds twin_memory{1000};

/// Collects signals synchronously. From its construction on, every signal that ends_a_wait(), CONT,
/// WINCH and CHLD are blocked and readable from fd(). A signal that was blocked at the start is
/// left alone, and one that was ignored is dropped (except CHLD, whose ignored disposition is set
/// to default: otherwise no child could be waited for). SIGPIPE is ignored: a closed stderr must
/// not end us. TSTP, TTIN and TTOU belong to FrontJobControl. A fork shares the object, but each
/// process reads its own signals from it.
class SignalGate {
 public:
  explicit SignalGate(const InheritedSignals& inherited);
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;

  /// A non-blocking, close-on-exec signalfd; readable when read() has something.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  /// The next signal, or nothing when none is pending.
  std::optional<ReceivedSignal> read();

  /// Those of `pending` that read() would return: not what was blocked at the start, and stays
  /// pending for ever, and not what is ignored.
  [[nodiscard]] SignalMask readable_of(SignalMask pending) const;

 private:
  sigset_t collected_{};
  UniqueFd fd_;
};

/// Ignores every signal that can be ignored but CHLD, for a process that others may only kill, by
/// blocking them. A signal meant for the job must not end it, nor stop it when it writes to the
/// terminal. Errors of our own (SEGV and the like) still end it. Call it before there are threads.
void ignore_all() noexcept;

/// For a holder process: puts it into a process group of its own, out of the job, since ^Z and
/// signals to that are not for it, and ignores what can be ignored (ignore_all()).
void leave_job() noexcept;

/// Whether this process has a terminal that can send it signals, be there a /dev/tty or not.
bool has_controlling_terminal();

/// Whether the default action of this signal ends a process: HUP, INT, QUIT, TERM, ALRM, the
/// real-time signals and so on; not KILL, not PIPE, and not the errors of our own code (SEGV, BUS,
/// FPE, ILL, ABRT, TRAP, SYS).
bool ends_a_wait(int signal) noexcept;

/// Dies of `signal` as if it had not been caught: no core dump of our own (PR_SET_DUMPABLE),
/// default disposition, unblocked, raised. Returns 128 + signal, for the caller to exit with, only
/// where the signal cannot kill us (PID 1 of a namespace).
int die_of(int signal) noexcept;

/// Reads `TERM`, `SIGTERM`, `term` or `15`; nothing for what is no signal (0, or a name that does
/// not exist).
std::optional<int> parse_signal(std::string_view text);

/// `TERM` for 15; `RTMIN+3`; the number when it has no name.
std::string signal_name(int signal);

}  // namespace redlock::child
