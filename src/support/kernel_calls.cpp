#include "support/kernel_calls.hpp"

#include <sys/timerfd.h>

namespace redlock::kernel {

#if (defined(__x86_64__) && defined(__LP64__)) || (defined(__aarch64__) && defined(__LP64__))

// Here libc's struct stat and timespec are the kernel's. libc's syscall() could be wrapped, too.

namespace {

// NOLINTBEGIN(hicpp-no-assembler)
long enter_kernel(long number, long first, long second, long third, long fourth) noexcept {
#ifdef __x86_64__
  long result = number;
  register long r10 asm("r10") = fourth;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(first), "S"(second), "d"(third), "r"(r10)
               : "rcx", "r11", "memory");
  return result;
#else
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = first;
  register long x1 asm("x1") = second;
  register long x2 asm("x2") = third;
  register long x3 asm("x3") = fourth;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory", "cc");
  return x0;
#endif
}
// NOLINTEND(hicpp-no-assembler)

long word(const void* address) noexcept {
  return reinterpret_cast<long>(address);
}

int call(long number, long first = 0, long second = 0, long third = 0, long fourth = 0) noexcept {
  const long result = enter_kernel(number, first, second, third, fourth);
  if (result >= 0) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace

timespec clock(clockid_t id) noexcept {
  timespec now{};
  call(SYS_clock_gettime, id, word(&now));
  return now;
}

int set_timer(int timer, const itimerspec& at) noexcept {
  return call(SYS_timerfd_settime, timer, TFD_TIMER_ABSTIME, word(&at));
}

uid_t effective_user() noexcept {
  return static_cast<uid_t>(call(SYS_geteuid));
}

int stat(const char* path, struct stat& status) noexcept {
  return kernel::fstatat(AT_FDCWD, path, status, 0);
}

int fstat(int fd, struct stat& status) noexcept {
  return call(SYS_fstat, fd, word(&status));
}

int fstatat(int directory, const char* path, struct stat& status, int flags) noexcept {
  return call(SYS_newfstatat, directory, word(path), word(&status), flags);
}

int fchown(int fd, uid_t user, gid_t group) noexcept {
  return call(SYS_fchown, fd, user, group);
}

#else

timespec clock(clockid_t id) noexcept {
  timespec now{};
  ::clock_gettime(id, &now);
  return now;
}

int set_timer(int timer, const itimerspec& at) noexcept {
  return ::timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, nullptr);
}

uid_t effective_user() noexcept {
  return ::geteuid();
}

int stat(const char* path, struct stat& status) noexcept {
  return ::stat(path, &status);
}

int fstat(int fd, struct stat& status) noexcept {
  return ::fstat(fd, &status);
}

int fstatat(int directory, const char* path, struct stat& status, int flags) noexcept {
  return ::fstatat(directory, path, &status, flags);
}

int fchown(int fd, uid_t user, gid_t group) noexcept {
  return ::fchown(fd, user, group);
}

#endif

}  // namespace redlock::kernel
