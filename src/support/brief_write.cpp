#include "support/brief_write.hpp"

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

}  // namespace

ssize_t write_briefly(int fd, std::string_view bytes) noexcept {
  const Interruptible interruptible;
  sigevent how{};
  how.sigev_notify = SIGEV_SIGNAL;
  how.sigev_signo = interruption;
  timer_t timer{};
  ssize_t written = -1;
  int error = EAGAIN;
  if (::timer_create(CLOCK_MONOTONIC, &how, &timer) == 0) {
    // The timer repeats, because its first signal may arrive before write() blocks.
    const timespec interval{0, max_wait_ns};
    const itimerspec times{interval, interval};
    if (::timer_settime(timer, 0, &times, nullptr) == 0) {
      written = ::write(fd, bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) error = errno;
    }
    ::timer_delete(timer);
  }
  errno = error;
  return written;
}

}  // namespace redlock
