#include "guard/pid_namespace.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "guard/signals.hpp"
#include "proc/descriptors.hpp"
#include "support/kernel_calls.hpp"
#include "support/text.hpp"

namespace redlock::guard {
namespace {

/// Init needs microseconds, unless another process stops it. The caller must renew a lease
/// meanwhile.
constexpr int timeout_ms = 500;

/// fork(2) with flags, by the system call: libc's fork() has no flags, and takes locks that a
/// thread of ours may hold.
pid_t clone_process(unsigned long flags) noexcept {
#if defined(__s390__) || defined(__CRIS__)
  return static_cast<pid_t>(::syscall(SYS_clone, nullptr, flags, nullptr, nullptr, nullptr));
#else
  return static_cast<pid_t>(::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
#endif
}

/// The init process. Another thread of our parent may have held a lock at the fork, so only
/// async-signal-safe functions may be called here.
[[noreturn]] void be_init(int lifeline) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  ::prctl(PR_SET_NAME, "lock-init", 0, 0, 0);
  ::setpgid(0, 0);  // leaves the holder process's group, which could not create a session otherwise
  ignore_all();
  ::signal(SIGCHLD, SIG_IGN);  // the kernel reaps orphans, even while we are stopped

  // Close everything, including our copy of the lifeline's other end: no pipe or connection may
  // stay open because of us.
  ::dup2(lifeline, STDIN_FILENO);
  proc::close_from(STDOUT_FILENO);

  // From here on we die with our parent, even while stopped, so it may start the command. If it
  // died before the prctl, its end is closed, and the send fails.
  char byte = 0;
  if (::send(STDIN_FILENO, &byte, 1, MSG_NOSIGNAL) != 1) ::_exit(0);
  while (::read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
  }
  ::_exit(0);
}

/// Returns 0, or an errno value if init is not ready.
int wait_until_ready(int lifeline) noexcept {
  pollfd readable{lifeline, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&readable, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return ready < 0 ? errno : ETIMEDOUT;
  char byte = 0;
  return ::recv(lifeline, &byte, 1, 0) == 1 ? 0 : ECHILD;
}

int wait_for(pid_t child) noexcept {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

Result<PidNamespace, std::string> failure(int error) {
  return unexpected("cannot make a pid namespace: " + errno_text(error));
}

std::string with_hint(const std::string& text) {
  return text + "; run it as root, in a container with CAP_SYS_ADMIN";
}

}  // namespace

PidNamespace::PidNamespace(pid_t init, UniqueFd lifeline, UniqueFd ours, UniqueFd theirs)
    : init_(init),
      lifeline_(std::move(lifeline)),
      ours_(std::move(ours)),
      theirs_(std::move(theirs)) {}

Result<PidNamespace, std::string> PidNamespace::create() {
  UniqueFd ours(::open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC));
  if (!ours) return failure(errno);
  std::array<int, 2> lifeline{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lifeline.data()) != 0)
    return failure(errno);
  UniqueFd for_init(lifeline[0]);
  UniqueFd for_us(lifeline[1]);

  const pid_t init =
      clone_process(static_cast<unsigned long>(CLONE_NEWPID) | static_cast<unsigned long>(SIGCHLD));
  if (init == 0) be_init(for_init.get());
  if (init < 0) return failure(errno);
  for_init.reset();

  int error = wait_until_ready(for_us.get());
  UniqueFd theirs(
      ::open(("/proc/" + std::to_string(init) + "/ns/pid").c_str(), O_RDONLY | O_CLOEXEC));
  if (!theirs && error == 0) error = errno;
  if (error != 0) {
    ::kill(init, SIGKILL);
    wait_for(init);
    return failure(error);
  }
  return PidNamespace(init, std::move(for_us), std::move(ours), std::move(theirs));
}

Result<void, std::string> PidNamespace::check() {
  auto made = create();
  if (!made) return unexpected(with_hint(made.error()));
  const pid_t child = made->fork();
  if (child == 0) ::_exit(mount_proc());
  const int error = errno;
  const int status = child > 0 ? wait_for(child) : 0;
  made->end();
  if (child < 0) return unexpected(with_hint("cannot enter a pid namespace: " + errno_text(error)));
  if (status != 0)
    return unexpected(
        with_hint("cannot mount a /proc for a pid namespace: " + errno_text(WEXITSTATUS(status))));
  return {};
}

void PidNamespace::end() noexcept {
  ::kill(init_, SIGKILL);  // even if stopped
  wait_for(init_);
}

pid_t PidNamespace::fork() const noexcept {
  if (::setns(theirs_.get(), CLONE_NEWPID) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) return 0;
  const int error = errno;
  if (::setns(ours_.get(), CLONE_NEWPID) != 0 && child > 0) {
    // We could not return to our own namespace, where later children belong. Kill this child, which
    // no caller knows yet, and fail.
    const int reason = errno;
    ::kill(child, SIGKILL);
    wait_for(child);
    errno = reason;
    return -1;
  }
  errno = error;
  return child;
}

int PidNamespace::mount_proc() noexcept {
  if (::unshare(CLONE_NEWNS) != 0) return errno;
  // The mount over /proc must not propagate to the mount namespace that we came from. All other
  // mounts still propagate, because a command that mounts something intends it for the whole
  // system.
  if (::mount(nullptr, "/proc", nullptr, MS_SLAVE, nullptr) != 0) return errno;
  return ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0 ? 0
                                                                                          : errno;
}

}  // namespace redlock::guard
