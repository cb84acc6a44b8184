#include "proc/watched_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>

#include "proc/cpu_share.hpp"
#include "proc/descendants.hpp"
#include "proc/process_stat.hpp"
#include "support/kernel_calls.hpp"
#include "support/text.hpp"

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

// --- Whether a process stands still ---

std::string directory_of(pid_t pid) {
  return "/proc/" + std::to_string(pid);
}

/// The state of each thread, as in proc(5); `?` for one that has just ended. Empty when there is no
/// such process.
std::map<pid_t, char> thread_states(pid_t pid) {
  std::map<pid_t, char> states;
  const std::string tasks = directory_of(pid) + "/task";
  for (const pid_t thread : numbers_in(tasks).value_or(std::vector<int>())) {
    const std::string stat =
        read_proc_file(tasks + "/" + std::to_string(thread) + "/stat").value_or("");
    const auto name_end = stat.rfind(") ");
    states[thread] =
        name_end == std::string::npos || name_end + 2 >= stat.size() ? '?' : stat[name_end + 2];
  }
  return states;
}

bool runs_no_more(char state) {
  return std::string_view("TtZXx").find(state) != std::string_view::npos;
}

/// The memory statistics of a process. Two processes that are not running have the same values, in
/// practice, only if they share their memory, as after vfork(2).
std::string memory_of(pid_t pid) {
  return read_proc_file(directory_of(pid) + "/statm").value_or("");
}

/// Whether every thread of the process is stopped or has ended, so that it forks no more and all
/// its children can be found. Check this after sending STOP, because a process runs on until it
/// leaves its current system call.
bool is_stopped(pid_t pid) {
  const auto states = thread_states(pid);
  const auto stopped = [](const auto& thread) { return runs_no_more(thread.second); };
  // Read twice: a thread that appears only in the second list was started by one that still ran.
  return !states.empty() && std::all_of(states.begin(), states.end(), stopped) &&
         thread_states(pid) == states;
}

/// Whether only a vfork(2) keeps the process from being stopped: one of its threads waits
/// uninterruptibly in the kernel until its child, which is among `stopped`, calls exec or ends.
/// False for a process that waits for a disk.
bool is_vfork_parent_of(pid_t pid, const std::set<pid_t>& stopped) {
  const auto states = thread_states(pid);
  const auto waiting = std::count_if(states.begin(), states.end(),
                                     [](const auto& thread) { return thread.second == 'D'; });
  const auto other = std::count_if(states.begin(), states.end(), [](const auto& thread) {
    return thread.second != 'D' && !runs_no_more(thread.second);
  });
  if (waiting == 0 || other != 0) return false;
  const std::string memory = memory_of(pid);
  const auto inheritors = std::count_if(stopped.begin(), stopped.end(), [&](pid_t child) {
    const auto stat = read_process_stat(child);
    return stat && stat->parent == pid && memory_of(child) == memory;
  });
  return inheritors >= waiting && thread_states(pid) == states;
}

}  // namespace

Result<WatchedProcess, std::string> WatchedProcess::open(pid_t pid) {
  UniqueFd pidfd(pidfd_open(pid, 0));
  if (!pidfd && (errno == ESRCH || errno == EINVAL))
    return refusal(pid, "there is no such process");
  if (!pidfd) return refusal(pid, std::string("cannot be watched: ") + errno_text(errno));
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

// --- The process that started us ---

namespace {

NoParentProcess gone(std::string text) {
  return {/*may_have_ended=*/true, std::move(text)};
}

}  // namespace

Result<UniqueFd, NoParentProcess> watch_parent_process(pid_t (*parent_of_us)()) {
  const pid_t parent = parent_of_us();
  if (parent == 0) {
    return unexpected(
        NoParentProcess{false, "the process that started redlock-cli is in another pid namespace"});
  }
  if (parent == 1) {
    return unexpected(
        gone("the parent of redlock-cli is process 1: what started it may have ended already"));
  }
  UniqueFd pidfd(pidfd_open(parent, 0));
  const int error = errno;
  if (parent_of_us() != parent)
    return unexpected(gone("the process that started redlock-cli has ended already"));
  if (!pidfd) {
    return unexpected(NoParentProcess{
        false, "the process that started redlock-cli cannot be watched: " + errno_text(error)});
  }
  return pidfd;
}

}  // namespace redlock::proc
