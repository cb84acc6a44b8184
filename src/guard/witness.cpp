#include "guard/witness.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>

#include "proc/descriptors.hpp"
#include "proc/title.hpp"
#include "support/kernel_calls.hpp"

namespace redlock::guard {
namespace {

/// The signal for a question: the last real-time signal, which is queued, and delivered after all
/// others. From any process but our parent, it is a signal like any other.
constexpr int question = 64;

/// What the witness writes: a signal that it received, or its answer to a question. It has ints for
/// bools, to avoid padding.
struct Report {
  Instant got_at;
  int number;
  int from_kernel;
  pid_t sender;
  int is_answer;
};

[[noreturn]] void report_signals(int report_to, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != parent) ::_exit(0);
  proc::close_all_but(
      report_to);  // the witness must not keep a pipe, or our end of the channel, open
  sigset_t all;
  sigfillset(&all);
  for (;;) {
    // The lowest number is delivered first: a question (the highest) only when nothing else is
    // pending.
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&all, &info);
    const bool from_kernel = info.si_code == SI_KERNEL;
    const pid_t sender = from_kernel ? 0 : info.si_pid;
    // saw() is never called for these, so their reports would only fill the pipe.
    if (!ends_a_wait(signal) || is_typed({signal, from_kernel, sender})) continue;
    const bool asked = signal == question && info.si_code == SI_USER && sender == parent;
    const Report report{BootClock::now(), signal, from_kernel ? 1 : 0, sender, asked ? 1 : 0};
    if (::write(report_to, &report, sizeof report) < 0 && errno != EAGAIN) ::_exit(0);
  }
}

}  // namespace

Witness::Witness(int argc, char** argv) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw_errno("pipe");
  reports_.reset(ends[0]);
  const UniqueFd report_to(ends[1]);

  // Blocked before the fork: the witness must not die of the signals that it is to report.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    proc::set_title(proc::witness_title, argc, argv);
    report_signals(report_to.get(), parent);
  }
  const int error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid_ < 0) throw_errno("fork", error);
}

Witness::~Witness() {
  // If the witness was killed with the command, its pid may be reused.
  if (::waitpid(pid_, nullptr, WNOHANG) != 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

int Witness::ask() {
  if (!has_ended()) ::kill(pid_, question);  // otherwise its pid may have been reused
  return ++questions_;
}

void Witness::listen() {
  Report report{};
  ssize_t length = 0;
  while ((length = ::read(reports_.get(), &report, sizeof report)) > 0) {
    if (report.is_answer != 0) {
      ++answers_;
    } else {
      received_[{report.number, report.from_kernel != 0, report.sender}] = report.got_at;
    }
  }
  // Another process has killed it, so no answer will come.
  if (length == 0) answers_ = all_answered;
}

bool Witness::saw(const ReceivedSignal& signal, Instant since) {
  const auto received = received_.find(signal);
  if (received == received_.end()) return false;
  const bool in_time = received->second >= since;
  received_.erase(received);
  return in_time;
}

void Witness::forget() {
  listen();
  received_.clear();
}

}  // namespace redlock::guard
