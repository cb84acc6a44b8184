#include "proc/process_stat.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "support/number.hpp"
#include "support/text.hpp"
#include "support/unique_fd.hpp"

namespace redlock::proc {

namespace {

/// How many processes a message names: enough to see what they are, in a line that is read.
constexpr std::size_t max_named = 5;

bool is_dead_state(char state) noexcept {
  return state == 'Z' || state == 'X' || state == 'x';
}

}  // namespace

std::optional<std::string> read_proc_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string content;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

std::optional<std::vector<int>> numbers_in(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()),
                                                      [](DIR* open) { return ::closedir(open); });
  if (!directory) return std::nullopt;
  std::vector<int> numbers;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (const auto number = whole_number<int>(entry->d_name)) numbers.push_back(*number);
  }
  return numbers;
}

std::optional<ProcessStat> process_stat_in(const std::string& stat_text) {
  // The name, in parentheses, can contain any text, even ") Z 1"; no later field contains a
  // parenthesis.
  const auto name_end = stat_text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  int threads = 0;
  ProcessStat stat{};
  // The fields from the 3rd to the 22nd.
  constexpr const char* form =
      " %c %d %*s %*s %d %*s %u %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d %*s %llu";
  unsigned flags = 0;
  if (std::sscanf(stat_text.c_str() + name_end + 1, form, &stat.state, &stat.parent, &stat.terminal,
                  &flags, &threads, &stat.started) != 6)
    return std::nullopt;
  // PF_EXITING and PF_SIGNALED of the kernel.
  constexpr unsigned ending = 0x4 | 0x400;
  stat.ending = (flags & ending) != 0;
  const bool ended = is_dead_state(stat.state) && threads <= 1;
  stat.living = !ended;
  return stat;
}

std::optional<ProcessStat> read_process_stat(pid_t pid) {
  const auto text = read_proc_file("/proc/" + std::to_string(pid) + "/stat");
  auto stat = text ? process_stat_in(*text) : std::nullopt;
  if (!stat || !stat->living || !is_dead_state(stat->state)) return stat;

  // Its first thread has ended. The others count as living only if one of them is not dead, since
  // dead ones remain listed until their tracer has waited for them.
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  const auto threads = numbers_in(tasks).value_or(std::vector<int>());
  stat->living = threads.empty() || std::any_of(threads.begin(), threads.end(), [&](int thread) {
                   const auto of_thread =
                       read_proc_file(tasks + "/" + std::to_string(thread) + "/stat");
                   // If it cannot be read for lack of descriptors or memory, assume that it lives.
                   if (!of_thread) return errno != ENOENT && errno != ESRCH;
                   const auto its = process_stat_in(*of_thread);
                   return its && !is_dead_state(its->state);
                 });
  return stat;
}

std::string process_name(pid_t pid) {
  std::string name = read_proc_file("/proc/" + std::to_string(pid) + "/comm").value_or("");
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

std::string process_text(pid_t pid) {
  const std::string name = escape_for_terminal(process_name(pid));
  return name.empty() ? std::to_string(pid) : name + " " + std::to_string(pid);
}

std::string processes_text(const std::vector<pid_t>& pids) {
  const std::size_t named = std::min(pids.size(), max_named);
  std::string text;
  for (std::size_t i = 0; i < named; ++i) text += (i == 0 ? "" : ", ") + process_text(pids[i]);
  if (named < pids.size()) text += " and " + std::to_string(pids.size() - named) + " more";
  return text;
}

std::uint64_t private_bytes_in(const std::string& statm) {
  static const auto page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  unsigned long long resident = 0;
  unsigned long long shared = 0;
  if (std::sscanf(statm.c_str(), "%*u %llu %llu", &resident, &shared) != 2) return 0;
  return resident > shared ? (resident - shared) * page_size : 0;
}

std::uint64_t private_bytes(pid_t pid) {
  return private_bytes_in(read_proc_file("/proc/" + std::to_string(pid) + "/statm").value_or(""));
}

CpuTime cpu_time_in(const std::string& schedstat) {
  long long ran = 0;
  long long waited = 0;
  long long timeslices = 0;
  if (std::sscanf(schedstat.c_str(), "%lld %lld %lld", &ran, &waited, &timeslices) != 3) return {};
  return {std::chrono::nanoseconds(ran), std::chrono::nanoseconds(waited), timeslices};
}

CpuTime cpu_time(pid_t pid) {
  return cpu_time_in(read_proc_file("/proc/" + std::to_string(pid) + "/schedstat").value_or(""));
}

std::vector<pid_t> pids_in(std::string_view list) {
  std::vector<pid_t> pids;
  while (!list.empty()) {
    const auto end = std::min(list.find_first_of(" \n"), list.size());
    const auto pid = whole_number<pid_t>(list.substr(0, end));
    if (pid && *pid > 0) pids.push_back(*pid);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return pids;
}

bool proc_is_ours() {
  std::array<char, 32> target{};
  const ssize_t length = ::readlink("/proc/self", target.data(), target.size());
  const std::string self = std::to_string(::getpid());
  return length > 0 && self == std::string_view(target.data(), static_cast<std::size_t>(length));
}

bool proc_shows_processes() {
  if (!proc_is_ours()) return false;
  const pid_t parent = ::getppid();
  return parent == 0 || read_process_stat(parent).has_value();
}

}  // namespace redlock::proc
