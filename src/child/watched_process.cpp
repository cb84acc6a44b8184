#include "child/watched_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "child/tree.hpp"

namespace redlock::child {
namespace {

/// How often a tree that forks while it is being stopped is walked again.
constexpr int most_stop_passes = 10;

/// The 22nd field of /proc/PID/stat, in clock ticks since boot; 0 when there is no such process, or it is a zombie.
unsigned long long start_time(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string state;
  fields >> state;
  if (state == "Z" || state == "X") return 0;
  constexpr int fields_between = 18;  // from the 4th to the 21st
  std::string skipped;
  for (int i = 0; i < fields_between; ++i) fields >> skipped;
  unsigned long long started = 0;
  fields >> started;
  return started;
}

unexpected<std::string> refusal(pid_t pid, const std::string& why) {
  return unexpected<std::string>("process " + std::to_string(pid) + ": " + why);
}

}  // namespace

Result<WatchedProcess, std::string> WatchedProcess::open(pid_t pid) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd && (errno == ESRCH || errno == EINVAL)) return refusal(pid, "there is no such process");
  if (!pidfd) return refusal(pid, std::string("cannot be watched: ") + std::strerror(errno));
  if (::kill(pid, 0) != 0) return refusal(pid, "you may not signal it, so it could not be stopped if the lock is lost");
  return WatchedProcess(pid, std::move(pidfd));
}

bool WatchedProcess::ended() const {
  pollfd readable{pidfd_.get(), POLLIN, 0};
  return ::poll(&readable, 1, 0) == 1;
}

void WatchedProcess::remember_everybody() {
  if (ended()) return;
  met_.insert({pid_, start_time(pid_)});
  for (const pid_t pid : living_descendants(pid_)) {
    // A holder that was forked below the process it watches must not take itself for its prey.
    if (pid != ::getpid()) met_.insert({pid, start_time(pid)});
  }
}

bool WatchedProcess::lives(const Met& met) {
  return met.started != 0 && start_time(met.pid) == met.started;
}

void WatchedProcess::signal(int signal) {
  remember_everybody();
  for (const Met& met : met_) {
    if (!lives(met)) continue;
    ::kill(met.pid, signal);
    ::kill(met.pid, SIGCONT);
  }
}

bool WatchedProcess::kill() {
  std::size_t known = 0;
  for (int pass = 0; pass < most_stop_passes; ++pass) {
    remember_everybody();
    for (const Met& met : met_) {
      if (lives(met)) ::kill(met.pid, SIGSTOP);
    }
    if (met_.size() == known) break;
    known = met_.size();
  }
  bool anything = false;
  for (const Met& met : met_) {
    if (!lives(met)) continue;
    anything = true;
    ::kill(met.pid, SIGKILL);
  }
  return !anything;
}

}  // namespace redlock::child
