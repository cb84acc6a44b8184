#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace redlock {

/// System calls that are answered by the kernel alone: a preloaded library (faketime, fakeroot)
/// that wraps libc's functions neither sees nor changes them. For every clock that decides, and for
/// both sides of every check of ownership. Errors are in errno. Async-signal-safe.
///
/// On other processors than 64-bit x86 and ARM these are libc's functions.
namespace kernel {

timespec clock(clockid_t id) noexcept;

/// timerfd_settime(2) with TFD_TIMER_ABSTIME.
int set_timer(int timer, const itimerspec& at) noexcept;

uid_t effective_user() noexcept;
int stat(const char* path, struct stat& status) noexcept;
int fstat(int fd, struct stat& status) noexcept;
int fstatat(int directory, const char* path, struct stat& status, int flags) noexcept;
int fchown(int fd, uid_t user, gid_t group) noexcept;

}  // namespace kernel

/// For a system call that failed, where that is not expected: throws std::system_error with the
/// call's name.
[[noreturn]] inline void throw_errno(const char* call, int error = errno) {
  throw std::system_error(error, std::generic_category(), call);
}

// System calls that some libcs do not wrap: glibc has close_range since 2.34 and the pidfd calls
// since 2.36, musl 1.2.3 has none of them. Errors are in errno; see the manual pages.

inline int close_range(unsigned first, unsigned last, unsigned flags) noexcept {
  return static_cast<int>(::syscall(SYS_close_range, first, last, flags));
}

inline int pidfd_open(pid_t pid, unsigned flags) noexcept {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, flags));
}

inline int pidfd_getfd(int pidfd, int fd, unsigned flags) noexcept {
  return static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, fd, flags));
}

/// Sends the signal as kill(2) does, without a siginfo_t.
inline int pidfd_send_signal(int pidfd, int signal) noexcept {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0U));
}

/// Whether the effective user may access `path` in these ways (R_OK, W_OK, X_OK); if not, errno has
/// the reason. Some container runtimes refuse the newer system call with EPERM; the answer is then
/// for the real user.
inline bool may_access(const char* path, int ways) noexcept {
  if (::faccessat(AT_FDCWD, path, ways, AT_EACCESS) == 0) return true;
  return errno == EPERM && ::access(path, ways) == 0;
}

/// renameat2(2) with RENAME_NOREPLACE.
inline int rename_without_replacing(int from_directory, const char* from, int to_directory,
                                    const char* to) noexcept {
  constexpr unsigned no_replace = 1;  // from linux/fs.h, which conflicts with libc's headers
  return static_cast<int>(
      ::syscall(SYS_renameat2, from_directory, from, to_directory, to, no_replace));
}

}  // namespace redlock
