#include "child/witness.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace redlock::child {
namespace {

[[noreturn]] void testify(int report_to, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != parent) ::_exit(0);
  sigset_t all;
  sigfillset(&all);
  for (;;) {
    const int signal = ::sigwaitinfo(&all, nullptr);
    if (signal < 0) continue;
    const char byte = static_cast<char>(signal);
    if (::write(report_to, &byte, 1) < 0 && errno != EAGAIN) ::_exit(0);
  }
}

}  // namespace

Witness::Witness() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  seen_.reset(ends[0]);
  const UniqueFd report_to(ends[1]);

  // Blocked before it exists: it must not die of what it is to report.
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
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Witness::saw(int signal) {
  bool found = false;
  std::array<char, 64> bytes{};
  ssize_t length = 0;
  while ((length = ::read(seen_.get(), bytes.data(), bytes.size())) > 0) {
    for (ssize_t i = 0; i < length; ++i) found |= bytes[static_cast<std::size_t>(i)] == static_cast<char>(signal);
  }
  return found;
}

}  // namespace redlock::child
