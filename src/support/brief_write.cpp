#include "support/brief_write.hpp"

#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace redlock {
namespace {

constexpr long max_wait_ns = 10'000'000;

/// A signal whose default is to be ignored, so that a foreign one that arrives meanwhile is
/// harmless.
constexpr int interruption = SIGURG;

void do_nothing(int) {}

/// Installs the handler for the rest of the process: a disposition is process-wide, and another
/// thread may be in write_briefly(), too.
bool install_handler() noexcept {
  struct sigaction interrupting {};
  interrupting.sa_handler = do_nothing;  // without SA_RESTART
  sigemptyset(&interrupting.sa_mask);
  return ::sigaction(interruption, &interrupting, nullptr) == 0;
}

/// While this object lives, the signal interrupts blocking system calls of this thread.
class Interruptible {
 public:
  Interruptible() noexcept {
    [[maybe_unused]] static const bool installed = install_handler();
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, interruption);
    ::pthread_sigmask(SIG_UNBLOCK, &only, &mask_);
  }
  ~Interruptible() { ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  sigset_t mask_{};
};

/// While this object lives, the signal comes again and again, because the first one may arrive
/// before write() blocks.
class Interruptions {
 public:
  Interruptions() noexcept {
    sigevent how{};
    how.sigev_notify = SIGEV_SIGNAL;
    how.sigev_signo = interruption;
    // Fails when the user's limit of pending signals (RLIMIT_SIGPENDING) is used up, or in a
    // sandbox.
    exists_ = ::timer_create(CLOCK_MONOTONIC, &how, &timer_) == 0;
    const timespec interval{0, max_wait_ns};
    const itimerspec times{interval, interval};
    come_ = exists_ && ::timer_settime(timer_, 0, &times, nullptr) == 0;
  }
  ~Interruptions() {
    const int error = errno;
    if (exists_) ::timer_delete(timer_);
    errno = error;
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

  [[nodiscard]] bool come() const noexcept { return come_; }

 private:
  timer_t timer_{};
  bool exists_ = false;
  bool come_ = false;
};

/// Writes what fits at this moment. It only blocks if another process fills a pipe between the two
/// calls.
ssize_t write_if_ready(int fd, std::string_view bytes) noexcept {
  pollfd ready{fd, POLLOUT, 0};
  if (::poll(&ready, 1, max_wait_ns / 1'000'000) > 0)
    return ::write(fd, bytes.data(), bytes.size());
  errno = EAGAIN;
  return -1;
}

}  // namespace

ssize_t write_briefly(int fd, std::string_view bytes) noexcept {
  const Interruptible interruptible;
  const Interruptions interruptions;
  if (!interruptions.come()) return write_if_ready(fd, bytes);
  const ssize_t written = ::write(fd, bytes.data(), bytes.size());
  if (written < 0 && errno == EINTR) errno = EAGAIN;
  return written;
}

}  // namespace redlock
