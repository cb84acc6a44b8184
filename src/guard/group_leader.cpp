#include "guard/group_leader.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "proc/cpu_share.hpp"
#include "proc/descriptors.hpp"
#include "proc/title.hpp"

namespace redlock::guard {
namespace {

[[noreturn]] void be_leader(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != parent) ::_exit(0);
  proc::set_name(proc::leader_title);
  proc::close_from(STDIN_FILENO);
  for (;;) ::pause();
}

}  // namespace

std::unique_ptr<GroupLeader> GroupLeader::fork(const PidNamespace* pid_namespace) {
  // Blocked before the fork: a signal to the group must not end its leader.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t parent = pid_namespace != nullptr ? 0 : ::getpid();
  const pid_t pid = pid_namespace != nullptr ? pid_namespace->fork() : ::fork();
  if (pid == 0) be_leader(parent);
  const int error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  if (pid < 0) return nullptr;
  ::setpgid(pid, pid);
  return std::unique_ptr<GroupLeader>(new GroupLeader(pid));
}

void GroupLeader::end() noexcept {
  ::kill(pid_, SIGKILL);
  proc::lend_cpu_share(pid_);
}

GroupLeader::~GroupLeader() {
  if (pid_ == 0) return;
  end();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace redlock::guard
