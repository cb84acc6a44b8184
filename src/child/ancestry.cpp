#include "child/ancestry.hpp"

#include <unistd.h>

#include <array>
#include <string_view>

#include "child/process_stat.hpp"
#include "support/boot_id.hpp"

namespace redlock::child {
namespace {

/// How many parents may end while we walk past them.
constexpr int max_broken_walks = 5;

/// What /proc says of the ancestor of ours that has this pid; nothing when no ancestor has it.
std::optional<ProcessStat> find_ancestor(long wanted) {
  int broken_walks = 0;
  for (pid_t pid = ::getppid(); pid > 0;) {
    const auto stat = read_process_stat(pid);
    if (!stat) {
      // The parent ended meanwhile; its children were reparented to a process further up.
      if (++broken_walks > max_broken_walks) return std::nullopt;
      pid = ::getppid();
      continue;
    }
    if (pid == wanted) return stat;
    pid = stat->parent;
  }
  return std::nullopt;
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

bool in_first_pid_namespace() {
  // PROC_PID_INIT_INO of the kernel, part of its interface. Without namespaces there is no such
  // link.
  constexpr std::string_view first = "pid:[4026531836]";
  std::array<char, 64> target{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", target.data(), target.size());
  return length < 0 || first == std::string_view(target.data(), static_cast<std::size_t>(length));
}

}  // namespace redlock::child
