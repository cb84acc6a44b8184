#include "child/shield.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "child/cpu_share.hpp"
#include "child/descriptors.hpp"
#include "child/signals.hpp"
#include "child/stop_plan.hpp"
#include "child/tree.hpp"

namespace redlock::child {

bool may_have_foreign_children() noexcept {
  siginfo_t none{};
  const bool childless =
      ::waitid(P_ALL, 0, &none, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 && errno == ECHILD;
  return !childless || ::getpid() == 1;
}

void become_shield(std::atomic<pid_t>& holder) {
  ::setpgid(0, 0);
  ignore_all();
  // Only the holder process and the front process know whose target it is: here the walk finds
  // everything.
  CommandTarget none;
  ProcessTree tree(none);
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) return;

  holder = child;
  claim_cpu_share();
  // No descriptor that another process waits on may stay open because of us.
  close_all_but(-1);
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  if (info.si_code == CLD_EXITED && info.si_status == 0) ::_exit(0);
  while (!tree.kill_and_reap(BootClock::now() + death_timeout))
    std::this_thread::sleep_for(kill_interval);
  ::_exit(0);
}

}  // namespace redlock::child
