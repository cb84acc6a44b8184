#include "guard/shield.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include "core/exit_code.hpp"
#include "core/stop_schedule.hpp"
#include "guard/signals.hpp"
#include "guard/tree.hpp"
#include "proc/cpu_share.hpp"
#include "proc/descriptors.hpp"

namespace redlock::guard {
namespace {

/// The longest pause between two attempts to kill what is left. No lease waits for it: the holder
/// process is dead.
constexpr Milliseconds max_pause{500};

}  // namespace

bool may_have_foreign_children() noexcept {
  siginfo_t none{};
  const bool childless =
      ::waitid(P_ALL, 0, &none, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 && errno == ECHILD;
  return !childless || ::getpid() == 1;
}

Shield become_shield(std::atomic<pid_t>& holder) {
  ::setpgid(0, 0);
  ignore_all();
  // The shield does not know the command, so its tree has no target and relies on the walk alone.
  CommandTarget none;
  ProcessTree tree(none);

  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) ::_exit(to_int(ExitCode::os_error));
  UniqueFd lifeline(ends[0]);
  UniqueFd ours(ends[1]);

  const pid_t shield = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) ::_exit(to_int(ExitCode::os_error));
  // Both processes write it, so that it is set before either can be seen to have ended.
  holder = child == 0 ? ::getpid() : child;
  if (child == 0) return {shield, std::move(lifeline)};

  proc::claim_cpu_share();
  [[maybe_unused]] const int left = ::chdir("/");  // keep no mount busy

  // Other processes wait for end of file on these descriptors, so we must not keep them open.
  proc::close_all_but(ours.get());

  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }

  if (info.si_code == CLD_EXITED && info.si_status == 0) ::_exit(0);
  // What cannot be killed may stay for hours, so the pauses grow.
  for (Milliseconds pause = kill_interval; !tree.kill_and_reap(BootClock::now() + death_timeout);
       pause = std::min(2 * pause, max_pause))
    std::this_thread::sleep_for(pause);
  ::_exit(0);
}

}  // namespace redlock::guard
