#include "guard/tree.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "proc/cpu_share.hpp"
#include "proc/descendants.hpp"
#include "proc/process_stat.hpp"

namespace redlock::guard {
namespace {

/// Whether a stopped process needs a CONT to handle the signal. Not for signals that stop a
/// process, nor for those that are ignored by default: a resized window must not wake a job that
/// the user has stopped.
bool needs_continue(int signal) noexcept {
  constexpr std::array sent_alone{0,       SIGKILL, SIGSTOP, SIGCONT, SIGTSTP,
                                  SIGTTIN, SIGTTOU, SIGCHLD, SIGURG,  SIGWINCH};
  return std::find(sent_alone.begin(), sent_alone.end(), signal) == sent_alone.end();
}

/// Whether the process was started before this instant, for certain: the kernel tells in clock
/// ticks.
bool existed_before(pid_t pid, Instant when) {
  static const auto ticks_per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto stat = proc::read_process_stat(pid);
  const auto ns = static_cast<std::uint64_t>(when.time_since_epoch().count());
  return stat && stat->started < ns / (1'000'000'000 / ticks_per_second);
}

/// Our children, as waitid(2) sees them. With `none_ended`, each either lives, or is dead but its
/// tracer has not waited for it.
enum class Children { none, none_ended, some_ended };

Children check_children() noexcept {
  siginfo_t ended{};
  if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0)
    return errno == ECHILD ? Children::none : Children::some_ended;
  return ended.si_pid == 0 ? Children::none_ended : Children::some_ended;
}

}  // namespace

void send_signal(pid_t kill_argument, int signal) noexcept {
  if (::kill(kill_argument, signal) == 0 && needs_continue(signal)) ::kill(kill_argument, SIGCONT);
}

CommandReach::CommandReach(const CommandTarget& target) noexcept : command_(target.command) {
  if (command_ == 0) return;
  // The number of a group that the command has left may have been reused.
  const pid_t group = ::getpgid(command_);
  if (group == command_ || (group > 0 && group == target.own_group)) group_ = group;
}

void CommandReach::send(int signal, bool wakes) const noexcept {
  const pid_t argument = group_ != 0 ? -group_ : command_;
  if (argument == 0) return;
  wakes ? send_signal(argument, signal) : static_cast<void>(::kill(argument, signal));
}

bool CommandReach::includes(pid_t pid) const noexcept {
  return group_ != 0 ? ::getpgid(pid) == group_ : command_ != 0 && pid == command_;
}

ProcessTree::ProcessTree(CommandTarget& target) : target_(target) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

std::vector<pid_t> ProcessTree::roots() const {
  if (root_ == gone) return {};
  return {root_ != 0 ? root_ : ::getpid()};
}

std::vector<pid_t> ProcessTree::descendants() const {
  std::vector<pid_t> pids = proc::living_descendants(roots());
  std::erase_if(pids, [this](pid_t pid) { return guards_.contains(pid); });
  return pids;
}

std::vector<pid_t> ProcessTree::members_of(pid_t group) const {
  std::vector<pid_t> pids = descendants();
  std::erase_if(pids, [group](pid_t pid) { return ::getpgid(pid) != group; });
  return pids;
}

bool ProcessTree::no_member_lives(pid_t group) const {
  if (::kill(-group, 0) != 0 && errno == ESRCH) return true;
  return proc::none_lives(roots(), [this, group](pid_t pid) {
    return !guards_.contains(pid) && ::getpgid(pid) == group;
  });
}

bool ProcessTree::no_descendant_lives() const {
  return proc::none_lives(roots(), [this](pid_t pid) { return !guards_.contains(pid); });
}

void ProcessTree::signal(int signal, Instant until,
                         const std::function<bool(pid_t)>& is_spared) const {
  const CommandReach reach(target_);
  reach.send(signal, /*wakes=*/true);

  // Signal each process once: some programs take a second TERM as an order to quit without cleaning
  // up.
  signal_found(signal, until,
               [&](pid_t pid) { return reach.includes(pid) || (is_spared && is_spared(pid)); });
}

void ProcessTree::signal_all_but(pid_t reached, int signal, Instant until) const {
  signal_found(signal, until, [=](pid_t pid) { return pid == reached; });
}

void ProcessTree::signal_found(int signal, Instant until,
                               const std::function<bool(pid_t)>& is_reached) const {
  const Instant began = BootClock::now();
  proc::DescendantWalk walk(roots(), proc::DescendantWalk::Passes::until_stable, until, spared_);
  while (const auto pid = walk.next()) {
    if (guards_.contains(*pid) || is_reached(*pid)) continue;
    // A handler of the signal may have started it to clean up.
    if (walk.was_missed() && !existed_before(*pid, began)) continue;
    send_signal(*pid, signal);
  }
}

void ProcessTree::kill(Instant until, std::atomic<std::int64_t>* progress) {
  made_progress_ = kill_all(Guards::spared, until, progress);
}

bool ProcessTree::kill_all(Guards guards, Instant until, std::atomic<std::int64_t>* progress) {
  if (progress != nullptr) *progress = BootClock::now().time_since_epoch().count();

  const pid_t spared = guards == Guards::spared ? spared_ : 0;
  if (cgroup_ != nullptr && spared == 0) cgroup_->kill();
  CommandReach(target_).send(SIGKILL, /*wakes=*/false);

  // A group that a descendant leads, or that was made for the command, consists of our descendants
  // only, so one system call can kill it. (Its number cannot be reused while the member that we
  // examine is in it.)
  std::set<pid_t> killed_groups;
  bool found_new = false;
  refused_ = false;
  proc::DescendantWalk walk(roots(), proc::DescendantWalk::Passes::one, until, spared);
  while (const auto pid = walk.next()) {
    if (progress != nullptr) *progress = BootClock::now().time_since_epoch().count();
    if (guards_.contains(*pid)) {
      if (guards == Guards::killed) ::kill(*pid, SIGKILL);
      continue;
    }
    const pid_t group = ::getpgid(*pid);
    const bool ours = group > 1 && (group == *pid || group == target_.own_group);
    if (ours && killed_groups.insert(group).second) ::kill(-group, SIGKILL);
    if (::kill(*pid, SIGKILL) == 0) {
      proc::lend_cpu_share(*pid);
      if (killed_.insert(*pid).second) found_new = true;
    } else if (errno == EPERM) {
      refused_ = true;
    }
  }
  return !refused_ && (found_new || BootClock::now() >= until);
}

bool ProcessTree::kill_and_reap(Instant until, std::atomic<std::int64_t>* progress) {
  const std::size_t reaped_before = ended_.size();
  made_progress_ = kill_all(Guards::killed, until, progress);
  while (const auto ended = reap_next()) ended_.push_back(*ended);
  made_progress_ = made_progress_ || (!refused_ && ended_.size() > reaped_before);
  return nothing_left();
}

std::optional<Ended> ProcessTree::reap() {
  if (ended_.empty()) return reap_next();
  const Ended first = ended_.front();
  ended_.pop_front();
  return first;
}

std::optional<Ended> ProcessTree::reap_next() {
  siginfo_t info{};
  constexpr int peek = WEXITED | WNOHANG | WNOWAIT | __WALL;
  if (::waitid(P_ALL, 0, &info, peek) != 0 || info.si_pid == 0) return std::nullopt;
  const pid_t pid = info.si_pid;
  // Before it is reaped, as its pid may be reused from then on.
  if (pid == target_.command) target_.command = 0;
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG | __WALL) != pid) return std::nullopt;
  guards_.erase(pid);
  killed_.erase(pid);
  if (pid == spared_) spared_ = 0;
  return Ended{pid, status};
}

bool ProcessTree::nothing_left() const {
  if (cgroup_ != nullptr && cgroup_->populated()) return false;
  const Children children = check_children();
  if (children != Children::none_ended) return children == Children::none;
  // A child that has died meanwhile must still be reaped, because its status may be the command's.
  // Dead children remain while a debugger that traces them has not waited for them.
  return proc::none_lives({::getpid()}) && check_children() != Children::some_ended;
}

}  // namespace redlock::guard
