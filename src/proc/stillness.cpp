#include "proc/stillness.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "proc/process_stat.hpp"

namespace redlock::proc {
namespace {

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

}  // namespace

bool is_stopped(pid_t pid) {
  const auto states = thread_states(pid);
  const auto stopped = [](const auto& thread) { return runs_no_more(thread.second); };
  // Read twice: a thread that appears only in the second list was started by one that still ran.
  return !states.empty() && std::all_of(states.begin(), states.end(), stopped) &&
         thread_states(pid) == states;
}

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

}  // namespace redlock::proc
