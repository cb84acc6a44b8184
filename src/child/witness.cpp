#include "child/witness.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

#include "child/descriptors.hpp"
#include "child/signals.hpp"

namespace redlock::child {
namespace {

/// The last real-time signal: it queues, and is delivered after all others. Sent by any process but
/// our parent it is a signal like any other.
constexpr int question = 64;

/// The byte written for a question: no signal has this number.
constexpr char answer = 0;

[[noreturn]] void testify(int report_to, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != parent) ::_exit(0);
  close_all_but(report_to);  // it must not keep a pipe, or our end of the channel, open
  sigset_t all;
  sigfillset(&all);
  for (;;) {
    // The lowest number is delivered first: a question (the highest) only when nothing else is
    // pending.
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&all, &info);
    if (!ends_a_wait(signal)) continue;  // CONT and WINCH would fill the pipe in time
    const bool asked = signal == question && info.si_code == SI_USER && info.si_pid == parent;
    const char byte = asked ? answer : static_cast<char>(signal);
    if (::write(report_to, &byte, 1) < 0 && errno != EAGAIN) ::_exit(0);
  }
}

}  // namespace

Witness::Witness() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  seen_.reset(ends[0]);
  const UniqueFd report_to(ends[1]);

  // Blocked before the fork: the witness must not die of the signals that it is to report.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) testify(report_to.get(), parent);
  const int error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid_ < 0) throw std::system_error(error, std::generic_category(), "fork");
}

Witness::~Witness() {
  // If the witness was killed with the command, its pid may be reused.
  if (::waitpid(pid_, nullptr, WNOHANG) != 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

int Witness::ask() {
  ::kill(pid_, question);
  return ++questions_;
}

void Witness::listen() {
  std::array<char, 64> bytes{};
  ssize_t length = 0;
  while ((length = ::read(seen_.get(), bytes.data(), bytes.size())) > 0) {
    for (ssize_t i = 0; i < length; ++i) {
      const int signal = static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
      if (signal == answer) {
        ++answers_;
      } else {
        heard_.insert(signal);
      }
    }
  }
  // Another process killed it: there is nothing to wait for.
  if (length == 0) answers_ = std::numeric_limits<int>::max();
}

bool Witness::saw(int signal) {
  return heard_.erase(signal) > 0;
}

void Witness::forget() {
  listen();
  heard_.clear();
}

}  // namespace redlock::child
