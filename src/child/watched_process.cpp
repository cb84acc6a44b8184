#include "child/watched_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "child/process_stat.hpp"
#include "child/descendants.hpp"

namespace redlock::child {
namespace {

/// How often a tree that forks while it is being stopped is walked again.
constexpr int most_stop_passes = 10;

/// When the process was started; 0 when there is no such process, or it has ended.
unsigned long long start_time(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat && stat->living ? stat->started : 0;
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
  std::set<pid_t> roots = living();
  if (!ended()) roots.insert(pid_);
  for (const pid_t pid : living_descendants({roots.begin(), roots.end()})) {
    // A holder that was forked below the process it watches must not take itself for its prey.
    if (pid != ::getpid()) met_.insert({pid, start_time(pid)});
  }
}

bool WatchedProcess::lives(const Met& met) {
  return met.started != 0 && start_time(met.pid) == met.started;
}

std::set<pid_t> WatchedProcess::living() const {
  std::set<pid_t> pids;
  for (const Met& met : met_) {
    if (lives(met)) pids.insert(met.pid);
  }
  return pids;
}

bool WatchedProcess::anything_lives() const {
  return !ended() || !living().empty();
}

void WatchedProcess::send(int signal) const {
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
  for (const pid_t pid : living()) ::kill(pid, signal);
}

void WatchedProcess::hold_still() {
  std::size_t known = 0;
  for (int pass = 0; pass < most_stop_passes; ++pass) {
    remember_everybody();
    send(SIGSTOP);
    if (pass > 0 && met_.size() == known) break;
    known = met_.size();
  }
}

void WatchedProcess::signal(int signal) {
  hold_still();  // what is forked between the look and the signal would lose its parent, and be lost to us
  send(signal);
  send(SIGCONT);
}

bool WatchedProcess::kill() {
  hold_still();
  const bool anything = anything_lives();
  if (anything) send(SIGKILL);
  return !anything;
}

}  // namespace redlock::child
