#include "proc/control_group.hpp"

#include <algorithm>

#include "proc/process_stat.hpp"

namespace redlock::proc {
namespace {

std::optional<std::string> tracked_group(const std::string& process) {
  const auto membership = read_proc_file("/proc/" + process + "/cgroup");
  return membership ? tracked_group_in(*membership) : std::nullopt;
}

bool is_in(std::string_view group, std::string_view parent) {
  if (!group.starts_with(parent)) return false;
  group.remove_prefix(parent.size());
  return parent.ends_with('/') || group.empty() || group.front() == '/';
}

}  // namespace

std::optional<std::string> tracked_group_in(std::string_view membership) {
  std::optional<std::string> group;
  while (!membership.empty()) {
    const auto end = std::min(membership.find('\n'), membership.size());
    const std::string_view line = membership.substr(0, end);
    membership.remove_prefix(std::min(end + 1, membership.size()));
    // `hierarchy:controllers:/path`
    const auto colon = line.find(':');
    const auto slash = line.find(":/");
    if (colon == std::string_view::npos || slash == std::string_view::npos) continue;
    const std::string path(line.substr(slash + 1));
    if (line.substr(colon).starts_with(":name=systemd:/")) return path;
    if (line.starts_with("0::/")) group = path;
  }
  return group;
}

bool is_managed_by(pid_t sender, pid_t command) {
  if (sender <= 0 || command <= 0) return false;
  const auto manager = tracked_group(std::to_string(sender));
  const auto theirs = tracked_group(std::to_string(command));
  const auto ours = tracked_group("self");
  return manager && theirs && ours && is_managed_by(*manager, *theirs, *ours);
}

bool is_managed_by(std::string_view sender, std::string_view command, std::string_view ours) {
  // A manager runs alone in this child of the group that is delegated to it.
  constexpr std::string_view of_manager = "/init.scope";
  if (!sender.ends_with(of_manager)) return false;
  sender.remove_suffix(of_manager.size());
  return is_in(ours, sender) && is_in(command, ours);
}

}  // namespace redlock::proc
