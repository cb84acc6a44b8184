#include "child/tree.hpp"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "child/process_stat.hpp"

namespace redlock::child {
namespace {

// A tree that forks as fast as we kill is taken by the next call; a single call must end.
constexpr int most_kill_passes = 10;

using Pids = std::vector<pid_t>;
using ChildrenByParent = std::map<pid_t, Pids>;

std::optional<pid_t> parse_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return pid;
}

/// The entries of a directory of /proc that are numbers, ascending.
Pids numbers_in(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), [](DIR* open) { return ::closedir(open); });
  Pids numbers;
  if (!directory) return numbers;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (const auto number = parse_pid(entry->d_name)) numbers.push_back(*number);
  }
  return numbers;
}

std::string directory_of(pid_t pid) {
  return "/proc/" + std::to_string(pid);
}

/// Whether /proc is there and counts as kill(2) does: seen from an inner pid namespace, the numbers of an outer /proc are other processes.
bool proc_is_ours() {
  std::array<char, 32> target{};
  const ssize_t length = ::readlink("/proc/self", target.data(), target.size());
  if (length <= 0) return false;
  return parse_pid({target.data(), static_cast<std::size_t>(length)}) == ::getpid();
}

std::string children_file(pid_t pid, pid_t thread) {
  return directory_of(pid) + "/task/" + std::to_string(thread) + "/children";
}

/// Kernels without CONFIG_PROC_CHILDREN do not have it.
bool have_children_files() {
  return ::access(children_file(::getpid(), ::getpid()).c_str(), R_OK) == 0;
}

bool is_living(pid_t pid) {
  if (const auto stat = read_process_stat(pid)) return stat->living;
  return ::kill(pid, 0) == 0 || errno == EPERM;  // /proc may hide a setuid process from us (hidepid)
}

bool out_of_resources(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/// Nothing when it could not look everywhere: what is not seen then is no proof of death.
std::optional<ChildrenByParent> scan_all_processes() {
  ChildrenByParent children;
  bool saw_us = false;
  for (const pid_t pid : numbers_in("/proc")) {
    errno = 0;
    if (const auto stat = read_process_stat(pid)) {
      children[stat->parent].push_back(pid);
      saw_us |= pid == ::getpid();
    } else if (out_of_resources(errno)) {
      return std::nullopt;
    }
  }
  return saw_us ? std::optional(children) : std::nullopt;
}

/// Children belong to the thread that forked them, so every thread has a list of its own.
Pids listed_children(pid_t pid) {
  Pids children;
  for (const pid_t thread : numbers_in(directory_of(pid) + "/task")) {
    const std::string list = read_proc_file(children_file(pid, thread)).value_or("");
    std::string_view rest = list;
    while (!rest.empty()) {
      const auto space = std::min(rest.find_first_of(" \n"), rest.size());
      if (const auto child = parse_pid(rest.substr(0, space))) children.push_back(*child);
      rest.remove_prefix(std::min(space + 1, rest.size()));
    }
  }
  return children;
}

/// Answers who the children of a process are, from the best source that this kernel has.
class Genealogy {
 public:
  Genealogy() : usable_(proc_is_ours()), listed_(usable_ && have_children_files()) {
    if (usable_ && !listed_) scanned_ = scan_all_processes().value_or(ChildrenByParent{});
  }

  [[nodiscard]] Pids children_of(pid_t pid) const {
    if (listed_) return listed_children(pid);
    const auto found = scanned_.find(pid);
    return found != scanned_.end() ? found->second : Pids{};
  }

 private:
  bool usable_;
  bool listed_;
  ChildrenByParent scanned_;
};

Pids direct_children() {
  return Genealogy().children_of(::getpid());
}

/// Breadth first: parents before children. Without the roots; zombies included.
Pids walk(const std::set<pid_t>& roots, const std::set<pid_t>& left_out, Instant until = Instant::max()) {
  const Genealogy genealogy;
  std::set<pid_t> seen(left_out);  // a pid used anew while we walk must not lead us round in a circle
  seen.insert(roots.begin(), roots.end());
  Pids found(roots.begin(), roots.end());
  for (std::size_t next = 0; next < found.size() && BootClock::now() < until; ++next) {
    for (const pid_t child : genealogy.children_of(found[next])) {
      if (seen.insert(child).second) found.push_back(child);
    }
  }
  found.erase(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(roots.size()));
  return found;
}

Pids living(Pids pids) {
  pids.erase(std::remove_if(pids.begin(), pids.end(), [](pid_t pid) { return !is_living(pid); }), pids.end());
  return pids;
}

/// Signals that a stopped process would sit on. Not those that are about stopping, nor those that are nothing by default: a changed
/// window must not wake a job that the user has stopped.
bool needs_continue(int signal) noexcept {
  constexpr std::array sent_alone{0, SIGKILL, SIGSTOP, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGCHLD, SIGURG, SIGWINCH};
  return std::find(sent_alone.begin(), sent_alone.end(), signal) == sent_alone.end();
}

/// What waitpid(2) says about `pid` (-1: any child) without blocking: its pid, 0 (all live), or -1 (no such child).
pid_t wait_now(pid_t pid, int& status) noexcept {
  return ::waitpid(pid, &status, WNOHANG | __WALL);
}

}  // namespace

ProcessTree::ProcessTree() {
  // First: an orphan that comes to us between the two calls is none of ours.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  const Pids children = direct_children();
  born_with_.insert(children.begin(), children.end());
}

std::vector<pid_t> living_descendants(const std::set<pid_t>& roots, Instant until) {
  return living(walk(roots, {}, until));
}

std::vector<pid_t> ProcessTree::descendants() const {
  Pids pids = living(walk({::getpid()}, born_with_));
  pids.erase(std::remove_if(pids.begin(), pids.end(), [this](pid_t pid) { return guards_.contains(pid); }), pids.end());
  return pids;
}

std::size_t ProcessTree::signal(int signal, const std::set<pid_t>& spared) const {
  std::size_t reached = 0;
  for (const pid_t pid : descendants()) {
    if (spared.contains(pid) || ::kill(pid, signal) != 0) continue;
    ++reached;
    if (needs_continue(signal)) ::kill(pid, SIGCONT);
  }
  return reached;
}

bool ProcessTree::kill_and_reap() {
  if (cgroup_ != nullptr) cgroup_->kill();
  std::set<pid_t> killed;
  bool grown = true;
  for (int pass = 0; grown && pass < most_kill_passes; ++pass) {
    grown = false;
    for (const pid_t pid : living(walk({::getpid()}, born_with_))) {
      grown |= killed.insert(pid).second;
      ::kill(pid, SIGKILL);
    }
  }
  while (const auto ended = reap_next()) ended_.push_back(*ended);
  return nothing_left();
}

std::optional<Ended> ProcessTree::reap() {
  if (ended_.empty()) return reap_next();
  const Ended first = ended_.front();
  ended_.pop_front();
  return first;
}

std::optional<Ended> ProcessTree::reap_next() {
  const auto ended = reap_next_of_all();
  if (ended) guards_.erase(ended->pid);  // anybody's number by now
  return ended;
}

std::optional<Ended> ProcessTree::reap_next_of_all() const {
  int status = 0;
  if (born_with_.empty()) {
    const pid_t pid = wait_now(-1, status);
    return pid > 0 ? std::optional(Ended{pid, status}) : std::nullopt;
  }
  // One by one: waiting for any child would take the zombies that belong to whoever became us.
  for (const pid_t child : direct_children()) {
    if (born_with_.contains(child)) continue;
    if (const pid_t pid = wait_now(child, status); pid > 0) return Ended{pid, status};
  }
  return std::nullopt;
}

bool ProcessTree::nothing_left() const {
  if (cgroup_ != nullptr && cgroup_->populated()) return false;
  if (born_with_.empty()) {
    siginfo_t none{};
    return ::waitid(P_ALL, 0, &none, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 && errno == ECHILD;
  }
  const auto spared = [this](pid_t child) { return born_with_.contains(child); };
  // Both sources: a children file may skip an entry while another child ends, and a scan does not see what hidepid hides. An orphan
  // escapes neither: it comes to us when its parent has ended, and the first of that line stays our child until we reap it.
  const auto everybody = proc_is_ours() ? scan_all_processes() : std::nullopt;
  if (!everybody) return false;
  const Pids listed = direct_children();
  const auto scanned = everybody->find(::getpid());
  return std::all_of(listed.begin(), listed.end(), spared) &&
         (scanned == everybody->end() || std::all_of(scanned->second.begin(), scanned->second.end(), spared));
}

}  // namespace redlock::child
