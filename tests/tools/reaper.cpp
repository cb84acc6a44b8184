#include "reaper.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace redlock::testing {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr int exit_of_timeout = 124;  // as timeout(1) has it
constexpr int exit_of_signal = 128;

/// What was told to end by the last lines of a test may still be on its way on a loaded machine.
constexpr milliseconds ending_patience{3000};

/// Longer than anything takes to die of KILL; what does not die then may not be killed by us.
constexpr milliseconds killing_patience{10'000};

constexpr milliseconds poll_interval{10};

/// Empty when it cannot be read. Without streams: they throw where a process ends meanwhile.
std::string content_of(const std::string& path) {
  std::string content;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return content;
  std::array<char, 4096> chunk{};
  for (ssize_t got = 0; (got = ::read(file, chunk.data(), chunk.size())) > 0;) {
    content.append(chunk.data(), static_cast<std::size_t>(got));
  }
  ::close(file);
  return content;
}

/// Living descendants of this process. All of /proc is read, as not every kernel lists children.
std::set<pid_t> descendants() {
  std::map<pid_t, std::vector<pid_t>> children;
  std::set<pid_t> zombies;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"),
                                                 [](DIR* open) { return ::closedir(open); });
  if (!proc) return {};
  while (const dirent* entry = ::readdir(proc.get())) {
    const auto pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0) continue;
    const std::string stat = content_of("/proc/" + std::to_string(pid) + "/stat");
    const auto name_end = stat.rfind(')');
    char state = 0;
    int parent = 0;
    if (name_end == std::string::npos ||
        std::sscanf(stat.c_str() + name_end + 1, " %c %d", &state, &parent) != 2)
      continue;
    children[parent].push_back(pid);
    if (state == 'Z' || state == 'X') zombies.insert(pid);
  }
  std::set<pid_t> found;
  std::vector<pid_t> next{::getpid()};
  while (!next.empty()) {
    const pid_t pid = next.back();
    next.pop_back();
    for (const pid_t child : children[pid]) {
      if (found.insert(child).second) next.push_back(child);
    }
  }
  for (const pid_t zombie : zombies) found.erase(zombie);
  return found;
}

/// What redlock-cli leaves behind on purpose, until its lease has expired: it is ended, and no
/// failure.
bool is_releaser(pid_t pid) {
  return content_of("/proc/" + std::to_string(pid) + "/comm") == "lock-releaser\n";
}

bool only_releasers_left() {
  const std::set<pid_t> left = descendants();
  return std::all_of(left.begin(), left.end(), is_releaser);
}

void report(const std::set<pid_t>& pids) {
  for (const pid_t pid : pids) {
    std::string command = content_of("/proc/" + std::to_string(pid) + "/cmdline");
    for (char& byte : command) {
      if (static_cast<unsigned char>(byte) < ' ') byte = ' ';
    }
    std::fprintf(stderr, "reaper: left running: %d %s\n", pid, command.c_str());
  }
}

/// Reaps what has ended; the wait status of `child` if that is among it.
std::optional<int> reap(pid_t child) {
  std::optional<int> ended;
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG | __WALL)) > 0;) {
    if (pid == child) ended = status;
  }
  return ended;
}

bool nothing_left() {
  siginfo_t none{};
  return ::waitid(P_ALL, 0, &none, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 && errno == ECHILD;
}

/// Reaps until nothing is left; false when `timeout` ends first. `each_time` is called in between.
bool reap_all(milliseconds timeout, const std::function<void()>& each_time) {
  const auto end = SteadyClock::now() + timeout;
  for (;;) {
    each_time();
    reap(0);
    if (nothing_left()) return true;
    if (SteadyClock::now() > end) return false;
    ::usleep(static_cast<useconds_t>(std::chrono::microseconds(poll_interval).count()));
  }
}

bool kill_all() {
  return reap_all(killing_patience, [] {
    for (const pid_t pid : descendants()) ::kill(pid, SIGKILL);
  });
}

/// Waits until `child` has ended, reaping orphans: what it, the time limit or a signal to us comes
/// to.
int outcome_of(pid_t child, const sigset_t& signals, std::chrono::seconds limit) {
  const auto end = SteadyClock::now() + limit;
  for (;;) {
    if (const auto status = reap(child))
      return WIFEXITED(*status) ? WEXITSTATUS(*status) : exit_of_signal + WTERMSIG(*status);
    if (limit.count() > 0 && SteadyClock::now() >= end) {
      std::fprintf(stderr, "reaper: not done within %lld seconds\n",
                   static_cast<long long>(limit.count()));
      report(descendants());
      return exit_of_timeout;
    }
    const timespec second{1, 0};
    const int signal = ::sigtimedwait(&signals, nullptr, &second);
    if (signal > 0 && signal != SIGCHLD) return exit_of_signal + signal;
  }
}

}  // namespace

int run_and_reap(const std::function<int()>& body, std::chrono::seconds limit,
                 Leftovers leftovers) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGHUP, SIGINT, SIGTERM}) sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) {
    std::perror("reaper: fork");
    return 1;
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    const int code = body();
    std::fflush(nullptr);
    ::_exit(code);
  }

  int outcome = outcome_of(child, signals, limit);
  if (leftovers == Leftovers::failure && outcome < exit_of_timeout &&
      !reap_all(ending_patience, [] {}) && !only_releasers_left()) {
    report(descendants());
    if (outcome == 0) outcome = 1;
  }
  if (!kill_all()) {
    std::fprintf(stderr, "reaper: cannot be killed:\n");
    report(descendants());
    if (outcome == 0) outcome = 1;
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return outcome;
}

}  // namespace redlock::testing
