#pragma once

#include <signal.h>

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "proc/signal_state.hpp"
#include "support/boot_clock.hpp"
#include "support/unique_fd.hpp"

namespace redlock::guard {

/// The signal mask and the ignored signals that this process was started with: a command must start
/// with exactly these. It records only the dispositions of CHLD, PIPE and URG (see
/// write_briefly()), because only these are ever changed while a command may exist; every other
/// signal that must not affect us is blocked.
class InheritedSignals {
 public:
  /// Reads the state of this process; call it before any code changes it.
  static InheritedSignals capture();

  [[nodiscard]] bool ignored(int signal) const noexcept;
  [[nodiscard]] bool blocked(int signal) const noexcept;

  /// Undo our changes between fork and exec: first the dispositions (default or ignore; we install
  /// no handlers), then the mask. Both are async-signal-safe.
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
  pid_t sender;      ///< 0 if from_kernel, or if the sender is outside our pid namespace

  auto operator<=>(const ReceivedSignal&) const = default;
};

/// Whether the signal was typed at the terminal, which sends INT and QUIT (^C, ^\) to its whole
/// foreground group. (A HUP from the terminal goes to the session leader alone, or to a group.)
bool is_typed(const ReceivedSignal& signal) noexcept;

/// A signal as the front process passes it on to the holder process.
struct PassedSignal {
  int number;
  pid_t sender = 0;          ///< as in ReceivedSignal
  bool reached_job = false;  ///< it was sent to the job's process group while the command was in it
};

/// How far apart two processes may note the signal that one sender sent to both: each may have to
/// wait for a CPU first.
inline constexpr Milliseconds twin_memory{1000};

/// Collects signals synchronously. From its construction on, CONT, WINCH, CHLD and every signal for
/// which ends_a_wait() is true are blocked and readable from fd(). A signal that was blocked at the
/// start stays blocked, and one that was ignored is discarded. (An ignored CHLD is set to default,
/// because otherwise no child could be waited for.) SIGPIPE is ignored, because a closed stderr
/// must not end us. FrontJobControl handles TSTP, TTIN and TTOU. A forked process shares the
/// object, but reads its own signals from it.
class SignalGate {
 public:
  explicit SignalGate(const InheritedSignals& inherited);
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;

  /// A non-blocking, close-on-exec signalfd; readable when read() has something.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  /// The next signal; nullopt when none is pending. Throws std::system_error.
  std::optional<ReceivedSignal> read();

  /// Those of `pending` that read() would return: without signals that were blocked at the start,
  /// which stay pending, and without ignored ones.
  [[nodiscard]] proc::SignalMask readable_of(proc::SignalMask pending) const;

 private:
  sigset_t collected_{};
  UniqueFd fd_;
};

/// Blocks every signal except CHLD and those of our own errors (SEGV and the like), which still end
/// the process. For a process that only SIGKILL may end: a signal for the job must neither end it,
/// nor stop it when it writes to the terminal. Call it before there are threads.
void ignore_all() noexcept;

/// For a holder process: moves it out of the job into a process group of its own, where ^Z and
/// signals to the job do not reach it, and calls ignore_all().
void leave_job() noexcept;

/// Whether this process has a controlling terminal, which can send it signals; works without
/// /dev/tty.
bool has_controlling_terminal();

/// Whether this signal ends a wait for the lock: every signal whose default action ends a process
/// (HUP, INT, QUIT, TERM, ALRM, the real-time signals and so on), except KILL, PIPE, and those for
/// errors of our own code (SEGV, BUS, FPE, ILL, ABRT, TRAP, SYS).
bool ends_a_wait(int signal) noexcept;

/// Dies of `signal`: raises it, unblocked and with its default disposition, but without a core dump
/// (PR_SET_DUMPABLE). Returns only if the signal cannot kill us (it is none that ends a process, or
/// we are PID 1 of a namespace): 128 + signal, for the caller to exit with.
int die_of(int signal) noexcept;

/// Parses `TERM`, `SIGTERM`, `term` or `15`; nullopt if that is not a signal (0, or an unknown
/// name).
std::optional<int> parse_signal(std::string_view text);

/// The name of a signal: `TERM` for 15, or `RTMIN+3`; its number if it has no name.
std::string signal_name(int signal);

}  // namespace redlock::guard
