#include "proc/watched_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proc/cpu_share.hpp"
#include "proc/descendants.hpp"
#include "proc/process_stat.hpp"
#include "proc/stillness.hpp"
#include "support/kernel_calls.hpp"

namespace redlock::proc {
namespace {

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
  UniqueFd pidfd(pidfd_open(pid, 0));
  if (!pidfd && (errno == ESRCH || errno == EINVAL))
    return refusal(pid, "there is no such process");
  if (!pidfd) return refusal(pid, std::string("cannot be watched: ") + std::strerror(errno));
  if (::kill(pid, 0) != 0)
    return refusal(pid, "you may not signal it, so it could not be stopped after a loss");
  return WatchedProcess(pid, std::move(pidfd));
}

bool WatchedProcess::ended() const {
  pollfd readable{pidfd_.get(), POLLIN, 0};
  return ::poll(&readable, 1, 0) == 1;
}

bool WatchedProcess::lives(const Descendant& descendant) {
  return start_time(descendant.pid) == descendant.started;
}

std::set<pid_t> WatchedProcess::living() const {
  std::set<pid_t> pids;
  if (!ended()) pids.insert(pid_);
  for (const Descendant& descendant : known_) {
    if (lives(descendant)) pids.insert(descendant.pid);
  }
  return pids;
}

/// Finds new descendants, remembers them in known_, and returns their pids.
std::vector<pid_t> WatchedProcess::discover(const std::set<pid_t>& known, Instant until) {
  std::vector<pid_t> found;
  for (const pid_t pid : living_descendants({known.begin(), known.end()}, until)) {
    // A holder process that was forked below the process that it watches must not stop itself.
    if (pid == ::getpid() || known.contains(pid)) continue;
    const Descendant descendant{pid, start_time(pid)};
    if (descendant.started == 0) continue;  // it has ended, or is hidden from us
    known_.insert(descendant);
    found.push_back(pid);
  }
  return found;
}

bool WatchedProcess::send(pid_t pid, int signal) const {
  if (pid == pid_) return pidfd_send_signal(pidfd_.get(), signal) == 0;
  return ::kill(pid, signal) == 0;
}

bool WatchedProcess::hold_still(Instant until) {
  const std::set<pid_t> known = living();
  std::set<pid_t> stopped;
  std::set<pid_t> running;
  for (const pid_t pid : known) {
    if (BootClock::now() >= until) return false;
    (is_stopped(pid) ? stopped : running).insert(pid);
  }

  for (auto next = running.begin(); next != running.end();) {
    if (BootClock::now() >= until) return false;
    const pid_t pid = *next;
    const bool settled = (pid == pid_ && is_init()) || is_vfork_parent_of(pid, stopped);
    if (settled) stopped.insert(pid);
    next = settled || !send(pid, SIGSTOP) ? running.erase(next) : std::next(next);
  }
  stopped_ = std::move(stopped);

  // Done last: a process that was seen stopped has no children except those found here.
  const std::vector<pid_t> found = discover(known, until);
  for (const pid_t pid : found) (void)send(pid, SIGSTOP);
  return running.empty() && found.empty() && BootClock::now() < until;
}

void WatchedProcess::signal(int signal, Reach reach) {
  for (const pid_t pid : living()) {
    if (reach == Reach::stopped && !stopped_.contains(pid)) continue;
    if (send(pid, signal)) (void)send(pid, SIGCONT);
  }
}

bool WatchedProcess::kill(Instant until) {
  const bool found_some = !discover(living(), until).empty();
  const bool ran_out_of_time = BootClock::now() >= until;
  bool refused = false;
  for (const pid_t pid : living()) {
    if (send(pid, SIGKILL)) {
      lend_cpu_share(pid);
    } else if (errno == EPERM) {
      refused = true;
    }
  }
  return !refused && (found_some || ran_out_of_time);
}

}  // namespace redlock::proc
