#include "guard/signals.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/exit_code.hpp"
#include "proc/process_stat.hpp"
#include "support/kernel_calls.hpp"
#include "support/number.hpp"

namespace redlock::guard {
namespace {

// The last signal of Linux. SIGRTMAX is a function call, not guaranteed to be async-signal-safe.
constexpr int last_signal = 64;

/// Together with the real-time signals, these are all signals whose default action ends a process,
/// except KILL, PIPE (which we ignore) and those for errors of our own code.
constexpr std::array ending_signals{SIGHUP,    SIGINT,  SIGQUIT,   SIGUSR1, SIGUSR2, SIGALRM,
                                    SIGTERM,
#ifdef SIGSTKFLT
                                    SIGSTKFLT,
#endif
                                    SIGXCPU,   SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO,   SIGPWR};

struct Name {
  std::string_view text;
  int number;
};

/// As in signal(7). If a number has several names, the first is printed. (sigabbrev_np(3) is
/// missing from most libcs.)
constexpr std::array names{
    Name{"HUP", SIGHUP},       Name{"INT", SIGINT},   Name{"QUIT", SIGQUIT},
    Name{"ILL", SIGILL},       Name{"TRAP", SIGTRAP}, Name{"ABRT", SIGABRT},
    Name{"BUS", SIGBUS},       Name{"FPE", SIGFPE},   Name{"KILL", SIGKILL},
    Name{"USR1", SIGUSR1},     Name{"SEGV", SIGSEGV}, Name{"USR2", SIGUSR2},
    Name{"PIPE", SIGPIPE},     Name{"ALRM", SIGALRM}, Name{"TERM", SIGTERM},
#ifdef SIGEMT
    Name{"EMT", SIGEMT},
#endif
#ifdef SIGSTKFLT
    Name{"STKFLT", SIGSTKFLT},
#endif
    Name{"CHLD", SIGCHLD},     Name{"CONT", SIGCONT}, Name{"STOP", SIGSTOP},
    Name{"TSTP", SIGTSTP},     Name{"TTIN", SIGTTIN}, Name{"TTOU", SIGTTOU},
    Name{"URG", SIGURG},       Name{"XCPU", SIGXCPU}, Name{"XFSZ", SIGXFSZ},
    Name{"VTALRM", SIGVTALRM}, Name{"PROF", SIGPROF}, Name{"WINCH", SIGWINCH},
    Name{"POLL", SIGPOLL},     Name{"PWR", SIGPWR},   Name{"SYS", SIGSYS},
    Name{"IOT", SIGABRT},      Name{"CLD", SIGCHLD},  Name{"IO", SIGIO}};

void set_disposition(int signal, void (*handler)(int)) noexcept {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

bool is_ignored(int signal) noexcept {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool stops(int signal) noexcept {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

std::optional<int> parse_number(std::string_view text) {
  const auto number = whole_number<int>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

/// The first entry for the number, or names.end().
auto named(int number) {
  return std::ranges::find(names, number, &Name::number);
}

/// libc reserves the numbers between the named and the real-time signals for itself.
bool is_signal(int number) {
  return named(number) != names.end() || (number >= SIGRTMIN && number <= SIGRTMAX);
}

std::optional<int> real_time_offset(std::string_view text, char sign) {
  if (text.empty()) return 0;
  if (text.front() != sign) return std::nullopt;
  const auto offset = parse_number(text.substr(1));
  if (!offset || *offset > SIGRTMAX - SIGRTMIN) return std::nullopt;
  return offset;
}

std::optional<int> parse_real_time(std::string_view name) {
  constexpr std::string_view first = "RTMIN";
  constexpr std::string_view last = "RTMAX";
  if (name.starts_with(first)) {
    if (const auto offset = real_time_offset(name.substr(first.size()), '+'))
      return SIGRTMIN + *offset;
  } else if (name.starts_with(last)) {
    if (const auto offset = real_time_offset(name.substr(last.size()), '-'))
      return SIGRTMAX - *offset;
  }
  return std::nullopt;
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  // Not with toupper(), which follows the locale: a Turkish one would break `kill`.
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return upper;
}

}  // namespace

InheritedSignals InheritedSignals::capture() {
  InheritedSignals inherited;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &inherited.mask_);
  inherited.ignored_child_ = is_ignored(SIGCHLD);
  inherited.ignored_pipe_ = is_ignored(SIGPIPE);
  inherited.ignored_urgent_ = is_ignored(SIGURG);
  return inherited;
}

bool InheritedSignals::ignored(int signal) const noexcept {
  if (signal == SIGCHLD) return ignored_child_;
  if (signal == SIGPIPE) return ignored_pipe_;
  return is_ignored(signal);
}

bool InheritedSignals::blocked(int signal) const noexcept {
  return sigismember(&mask_, signal) == 1;
}

void InheritedSignals::restore_dispositions() const noexcept {
  if (ignored_child_) set_disposition(SIGCHLD, SIG_IGN);
  if (!ignored_pipe_) set_disposition(SIGPIPE, SIG_DFL);
  if (ignored_urgent_) set_disposition(SIGURG, SIG_IGN);
}

void InheritedSignals::restore_mask() const noexcept {
  ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

SignalGate::SignalGate(const InheritedSignals& inherited) {
  sigemptyset(&collected_);
  sigaddset(&collected_, SIGCHLD);
  for (int signal = 1; signal <= last_signal; ++signal) {
    const bool wanted = ends_a_wait(signal) || signal == SIGCONT || signal == SIGWINCH;
    if (wanted && !inherited.blocked(signal)) sigaddset(&collected_, signal);
  }
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &collected_, nullptr); error != 0)
    throw_errno("pthread_sigmask", error);
  if (inherited.ignored(SIGCHLD)) set_disposition(SIGCHLD, SIG_DFL);
  set_disposition(SIGPIPE, SIG_IGN);
  fd_ = UniqueFd(::signalfd(-1, &collected_, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd_) throw_errno("signalfd");
}

std::optional<ReceivedSignal> SignalGate::read() {
  for (;;) {
    signalfd_siginfo info{};
    const ssize_t got = ::read(fd_.get(), &info, sizeof info);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN) throw_errno("read signalfd");
    if (got != static_cast<ssize_t>(sizeof info)) return std::nullopt;
    const int signal = static_cast<int>(info.ssi_signo);
    // A blocked signal becomes pending even if it is ignored. Checking the few that arrive is
    // cheaper than checking all at the start.
    if (signal != SIGCHLD && is_ignored(signal)) continue;
    const bool from_kernel = info.ssi_code == SI_KERNEL;
    return ReceivedSignal{signal, from_kernel, from_kernel ? 0 : static_cast<pid_t>(info.ssi_pid)};
  }
}

proc::SignalMask SignalGate::readable_of(proc::SignalMask pending) const {
  proc::SignalMask readable = 0;
  for (int signal = 1; signal <= last_signal; ++signal) {
    const bool is_pending = (pending & proc::mask_of(signal)) != 0;
    if (is_pending && sigismember(&collected_, signal) == 1 && !is_ignored(signal))
      readable |= proc::mask_of(signal);
  }
  return readable;
}

void ignore_all() noexcept {
  sigset_t ignored;
  sigfillset(&ignored);
  for (const int signal : {SIGCHLD, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
    sigdelset(&ignored, signal);
  ::pthread_sigmask(SIG_BLOCK, &ignored, nullptr);
}

bool is_typed(const ReceivedSignal& signal) noexcept {
  return signal.from_kernel && (signal.number == SIGINT || signal.number == SIGQUIT);
}

void leave_job() noexcept {
  ::setpgid(0, 0);
  ignore_all();
}

bool has_controlling_terminal() {
  if (const UniqueFd terminal{::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)}) return true;
  // Only ENXIO means that there is no terminal. Any other error concerns the file, which may be
  // missing in a container or a chroot, or may not be opened.
  if (errno == ENXIO) return false;
  const auto stat = proc::read_process_stat(::getpid());
  return stat && stat->terminal != 0;
}

bool ends_a_wait(int signal) noexcept {
  if (signal >= SIGRTMIN && signal <= last_signal) return true;
  return std::find(ending_signals.begin(), ending_signals.end(), signal) != ending_signals.end();
}

int die_of(int signal) noexcept {
  const int status = signal_exit_base + signal;
  if (signal <= 0 || signal > last_signal || stops(signal)) return status;
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  set_disposition(signal, SIG_DFL);  // fails for KILL, which has no other disposition
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  // raise() sends it to this thread: another thread might receive it later, and we would return
  // first.
  ::raise(signal);
  return status;
}

std::optional<int> parse_signal(std::string_view text) {
  if (const auto number = parse_number(text)) return is_signal(*number) ? number : std::nullopt;
  const std::string upper = upper_case(text);
  std::string_view name = upper;
  if (name.starts_with("SIG")) name.remove_prefix(3);
  const auto known = std::ranges::find(names, name, &Name::text);
  return known != names.end() ? known->number : parse_real_time(name);
}

std::string signal_name(int signal) {
  if (const auto known = named(signal); known != names.end()) return std::string(known->text);
  if (signal == SIGRTMIN) return "RTMIN";
  if (signal > SIGRTMIN && signal <= SIGRTMAX) return "RTMIN+" + std::to_string(signal - SIGRTMIN);
  return std::to_string(signal);
}

}  // namespace redlock::guard
