#include "child/ancestry.hpp"

#include <unistd.h>

#include "child/process_stat.hpp"
#include "support/boot_id.hpp"

namespace redlock::child {
namespace {

/// How often a parent may end while we walk past it.
constexpr int most_broken_walks = 5;

}  // namespace

std::optional<ProcessIdentity> identify(pid_t pid) {
  const auto boot = read_boot_id();
  const auto stat = read_process_stat(pid);
  if (!boot || !stat) return std::nullopt;
  return ProcessIdentity{*boot, pid, stat->started};
}

pid_t parent_of(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat ? stat->parent : 0;
}

bool is_ancestor(const ProcessIdentity& process) {
  if (read_boot_id() != process.boot) return false;
  int broken_walks = 0;
  for (pid_t pid = ::getppid(); pid > 0;) {
    const auto stat = read_process_stat(pid);
    if (!stat) {
      // It ended meanwhile; whoever has its children now is further up.
      if (++broken_walks > most_broken_walks) return false;
      pid = ::getppid();
      continue;
    }
    if (pid == process.pid) return stat->started == process.start;
    pid = stat->parent;
  }
  return false;
}

}  // namespace redlock::child
