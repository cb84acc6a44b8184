#include "child/ancestry.hpp"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "support/boot_id.hpp"

namespace redlock::child {
namespace {

/// How often a parent may end while we walk past it.
constexpr int most_broken_walks = 5;

struct Stat {
  pid_t parent = 0;
  unsigned long long start = 0;
};

/// The 4th and the 22nd field of /proc/PID/stat.
std::optional<Stat> read_stat(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = text.rfind(')');  // the name can hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  Stat stat;
  fields >> skipped >> stat.parent;
  constexpr int fields_between = 17;
  for (int i = 0; i < fields_between; ++i) fields >> skipped;
  fields >> stat.start;
  if (!fields) return std::nullopt;
  return stat;
}

}  // namespace

std::optional<ProcessIdentity> identify(pid_t pid) {
  const auto boot = read_boot_id();
  const auto stat = read_stat(pid);
  if (!boot || !stat) return std::nullopt;
  return ProcessIdentity{*boot, pid, stat->start};
}

pid_t parent_of(pid_t pid) {
  const auto stat = read_stat(pid);
  return stat ? stat->parent : 0;
}

bool is_ancestor(const ProcessIdentity& process) {
  if (read_boot_id() != process.boot) return false;
  int broken_walks = 0;
  for (pid_t pid = ::getppid(); pid > 0;) {
    const auto stat = read_stat(pid);
    if (!stat) {
      // It ended meanwhile; whoever has its children now is further up.
      if (++broken_walks > most_broken_walks) return false;
      pid = ::getppid();
      continue;
    }
    if (pid == process.pid) return stat->start == process.start;
    pid = stat->parent;
  }
  return false;
}

}  // namespace redlock::child
