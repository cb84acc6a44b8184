#include "proc/ancestry.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <tuple>

#include "proc/descendants.hpp"
#include "proc/process_stat.hpp"
#include "proc/title.hpp"
#include "support/boot_clock.hpp"

namespace redlock::proc {
namespace {

/// How many ancestors may end during a walk before we give up.
constexpr int max_broken_walks = 5;

/// The stat of our ancestor with this pid; nullopt when no ancestor has it.
std::optional<ProcessStat> find_ancestor(long wanted) {
  int broken_walks = 0;
  for (pid_t pid = ::getppid(); pid > 0;) {
    const auto stat = read_process_stat(pid);
    if (!stat) {
      // The parent has ended meanwhile, and its children were reparented: start again from ours.
      if (++broken_walks > max_broken_walks) return std::nullopt;
      pid = ::getppid();
      continue;
    }
    if (pid == wanted) return stat;
    pid = stat->parent;
  }
  return std::nullopt;
}

bool is_called(pid_t pid, std::string_view title) {
  return read_proc_file("/proc/" + std::to_string(pid) + "/comm") == std::string(title) + "\n";
}

/// Whether an argument on its command line is the key, or ends with it, as `--key=KEY` does.
bool names_key(pid_t pid, const std::string& key) {
  const auto words = read_proc_file("/proc/" + std::to_string(pid) + "/cmdline");
  return words && words->find(key + '\0') != std::string::npos;
}

/// A holder process also adopts the orphans of its command, so the command is the oldest of its
/// children.
bool is_command_of(pid_t process, pid_t holder) {
  const auto command = read_process_stat(process);
  if (!command) return false;
  for (const pid_t other : living_descendants({holder})) {
    const auto stat = read_process_stat(other);
    if (!stat || stat->parent != holder) continue;
    // Of two that were started in the same clock tick, the one with the lower pid is older.
    if (std::tie(stat->started, other) < std::tie(command->started, process)) return false;
  }
  return true;
}

/// Whether a holder process whose command was ended by a signal still waits for `process`: it waits
/// for the command's process group, which is either that of the front process, or has lost its
/// leader.
bool is_awaited_by(pid_t process, pid_t front) {
  const pid_t group = ::getpgid(process);
  if (group <= 0) return false;
  const bool has_lost_leader = ::kill(group, 0) != 0 && errno == ESRCH;
  return group == ::getpgid(front) || (has_lost_leader && ::getsid(process) == ::getsid(front));
}

}  // namespace

std::optional<ProcessIdentity> identify(pid_t pid) {
  const auto boot = read_boot_id();
  const auto stat = read_process_stat(pid);
  if (!boot || !stat) return std::nullopt;
  return ProcessIdentity{*boot, pid, stat->started};
}

bool is_ancestor(const ProcessIdentity& process) {
  if (read_boot_id() != process.boot) return false;
  const auto ancestor = find_ancestor(process.pid);
  return ancestor && ancestor->started == process.start;
}

bool is_ancestor(pid_t pid) {
  return find_ancestor(pid).has_value();
}

bool is_ancestor(pid_t pid, unsigned long long started) {
  const auto ancestor = find_ancestor(pid);
  return ancestor && ancestor->started == started;
}

bool is_enclosing_run(pid_t pid, const std::string& key) {
  if (!names_key(pid, key)) return false;
  // Going up from us: the command, the holder process (under another title when its command has
  // ended), possibly a shield, the front process.
  std::array<pid_t, 3> last{0, 0, ::getpid()};
  while (last.back() > 0) {
    const auto stat = read_process_stat(last.back());
    if (!stat) return false;
    if (stat->parent == pid) {
      const bool is_shielded = is_called(last[2], shield_title);
      const pid_t holder = last[is_shielded ? 1 : 2];
      const pid_t command = last[is_shielded ? 0 : 1];
      if (is_called(holder, awaiter_title)) return is_awaited_by(command, pid);
      return is_called(holder, holder_title) && is_command_of(command, holder);
    }
    last = {last[1], last[2], stat->parent};
  }
  return false;
}

std::vector<pid_t> awaited_by(pid_t front) {
  std::vector<pid_t> awaited;
  for (const pid_t below : living_descendants({front})) {
    if (!is_called(below, awaiter_title)) continue;
    for (const pid_t process : living_descendants({below})) {
      if (is_awaited_by(process, front)) awaited.push_back(process);
    }
    break;
  }
  return awaited;
}

bool in_first_pid_namespace() {
  // PROC_PID_INIT_INO of the kernel, which is part of its interface. A kernel without namespaces
  // has no such link.
  constexpr std::string_view first = "pid:[4026531836]";
  std::array<char, 64> target{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", target.data(), target.size());
  return length < 0 || first == std::string_view(target.data(), static_cast<std::size_t>(length));
}

}  // namespace redlock::proc
