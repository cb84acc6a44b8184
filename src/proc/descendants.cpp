#include "proc/descendants.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "proc/process_stat.hpp"

namespace redlock::proc {
namespace {

std::string task_directory(pid_t pid) {
  return "/proc/" + std::to_string(pid) + "/task";
}

std::string children_file(pid_t pid, pid_t thread) {
  return task_directory(pid) + "/" + std::to_string(thread) + "/children";
}

/// Kernels without CONFIG_PROC_CHILDREN do not have it.
bool have_children_files() {
  return ::access("/proc/thread-self/children", R_OK) == 0;
}

bool is_living(pid_t pid) {
  if (const auto stat = read_process_stat(pid)) return stat->living;
  // /proc may hide a setuid process from us (hidepid).
  return ::kill(pid, 0) == 0 || errno == EPERM;
}

/// Most processes have one thread, which the link count of the task directory shows without reading
/// it.
std::vector<pid_t> threads_of(pid_t pid) {
  constexpr nlink_t links_of_one_thread = 3;
  struct stat info {};
  const std::string directory = task_directory(pid);
  if (::stat(directory.c_str(), &info) != 0) return {};
  if (info.st_nlink == links_of_one_thread) return {pid};
  return numbers_in(directory).value_or(std::vector<pid_t>());
}

/// False when the process may exist, but could not be read for lack of descriptors or memory.
bool add_parent(pid_t pid, std::vector<std::pair<pid_t, pid_t>>& parents) {
  errno = 0;
  if (const auto stat = read_process_stat(pid)) {
    parents.emplace_back(stat->parent, pid);
    return true;
  }
  return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
}

}  // namespace

bool proc_shows_descendants() {
  return proc_is_ours() && (have_children_files() || read_process_stat(::getpid()).has_value());
}

DescendantWalk::DescendantWalk(const std::vector<pid_t>& roots, Instant until, pid_t spared)
    : until_(until), seen_{spared} {
  if (proc_is_ours()) source_ = have_children_files() ? Source::children_files : Source::scan;
  complete_ = source_ != Source::none;
  if (source_ == Source::scan) {
    for (const pid_t pid : numbers_in("/proc").value_or(std::vector<pid_t>())) {
      if (BootClock::now() >= until_ || !add_parent(pid, scanned_)) complete_ = false;
      if (BootClock::now() >= until_) break;
    }
    std::sort(scanned_.begin(), scanned_.end());
  }

  for (const pid_t root : roots) {
    seen_.insert(root);
    read_children(root);
  }
}

std::optional<pid_t> DescendantWalk::next() {
  if (next_ == found_.size()) return std::nullopt;
  if (BootClock::now() >= until_) {
    complete_ = false;
    return std::nullopt;
  }
  const pid_t pid = found_[next_++];
  read_children(pid);
  return pid;
}

void DescendantWalk::read_children(pid_t pid) {
  const auto add = [this](pid_t child) {
    if (seen_.insert(child).second) found_.push_back(child);
  };
  if (source_ == Source::scan) {
    auto child =
        std::lower_bound(scanned_.begin(), scanned_.end(), std::pair<pid_t, pid_t>(pid, 0));
    for (; child != scanned_.end() && child->first == pid; ++child) add(child->second);
    return;
  }
  if (source_ == Source::none) return;

  // Children belong to the thread that forked them, so each thread has its own list.
  for (const pid_t thread : threads_of(pid)) {
    const std::string list = read_proc_file(children_file(pid, thread)).value_or("");
    for (const pid_t child : pids_in(list)) add(child);
  }
}

bool only_dead_children() {
  // A dead process has no children. So a living descendant is our child, or below a living child,
  // and the first walk meets a living process. If its parent dies during that walk, it becomes our
  // child, and the second walk finds it as a new one.
  const auto find_dead_children = []() -> std::optional<std::vector<pid_t>> {
    std::vector<pid_t> pids;
    DescendantWalk walk({::getpid()});
    while (const auto pid = walk.next()) {
      if (is_living(*pid)) return std::nullopt;
      pids.push_back(*pid);
    }
    return walk.complete() ? std::optional(std::move(pids)) : std::nullopt;
  };
  const auto first = find_dead_children();
  return first && find_dead_children() == first;
}

std::vector<pid_t> living_descendants(const std::vector<pid_t>& roots, Instant until) {
  std::vector<pid_t> living;
  DescendantWalk walk(roots, until);
  while (const auto pid = walk.next()) {
    if (is_living(*pid)) living.push_back(*pid);
  }
  return living;
}

}  // namespace redlock::proc
