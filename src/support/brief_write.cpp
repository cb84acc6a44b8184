#include "support/brief_write.hpp"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace redlock {
namespace {

constexpr long max_wait_ns = 10'000'000;

/// Ignored by default: one that comes from outside meanwhile is no loss.
constexpr int interruption = SIGURG;

void do_nothing(int) {}

/// Installs the handler for the rest of the process: another thread may be writing, too, and a
/// disposition is the whole process's.
bool install_handler() noexcept {
  struct sigaction interrupting {};
  interrupting.sa_handler = do_nothing;  // without SA_RESTART
  sigemptyset(&interrupting.sa_mask);
  return ::sigaction(interruption, &interrupting, nullptr) == 0;
}

/// While it lives, the signal interrupts whatever this thread waits for.
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
    // Again and again: the first may come before the write has begun to wait.
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
