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

/// A family that always grows must not hold the walk for ever.
constexpr unsigned max_passes = 32;

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

DescendantWalk::DescendantWalk(const std::vector<pid_t>& roots, Passes passes, Instant until,
                               pid_t spared)
    : roots_(roots), passes_(passes), until_(until), seen_{spared} {
  if (proc_is_ours()) source_ = have_children_files() ? Source::children_files : Source::scan;
  complete_ = source_ != Source::none;
  seen_.insert(roots_.begin(), roots_.end());
  scan();
  for (const pid_t root : roots_) read_children(root);
}

std::optional<pid_t> DescendantWalk::next() {
  if (next_ == found_.size() && (passes_ == Passes::one || !find_missed())) return std::nullopt;
  if (BootClock::now() >= until_) {
    complete_ = false;
    return std::nullopt;
  }
  const pid_t pid = found_[next_++];
  read_children(pid);
  return pid;
}

/// Walks once more. Returns whether it found new descendants.
bool DescendantWalk::find_missed() {
  if (BootClock::now() >= until_ || passes_done_ == max_passes) {
    complete_ = false;
    return false;
  }
  ++passes_done_;
  scan();
  const std::size_t known = found_.size();
  for (std::size_t i = known; i-- > 0;) read_children(found_[i]);
  for (const pid_t root : roots_) read_children(root);
  return found_.size() > known;
}

void DescendantWalk::scan() {
  if (source_ != Source::scan) return;
  scanned_.clear();
  for (const pid_t pid : numbers_in("/proc").value_or(std::vector<pid_t>())) {
    if (BootClock::now() >= until_ || !add_parent(pid, scanned_)) complete_ = false;
    if (BootClock::now() >= until_) break;
  }
  std::sort(scanned_.begin(), scanned_.end());
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

std::vector<pid_t> living_descendants(const std::vector<pid_t>& roots, Instant until) {
  std::vector<pid_t> living;
  DescendantWalk walk(roots, DescendantWalk::Passes::until_stable, until);
  while (const auto pid = walk.next()) {
    if (is_living(*pid)) living.push_back(*pid);
  }
  return living;
}

bool none_lives(const std::vector<pid_t>& roots, const std::function<bool(pid_t)>& counts) {
  DescendantWalk walk(roots);
  while (const auto pid = walk.next()) {
    if (is_living(*pid) && (!counts || counts(*pid))) return false;
  }
  return walk.complete();
}

}  // namespace redlock::proc
