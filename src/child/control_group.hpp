#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace redlock::child {

/// The control group by which systemd keeps track of a process, from the text of its
/// /proc/PID/cgroup: that of systemd's own hierarchy, where there is one, else that of version 2.
std::optional<std::string> tracked_group_in(std::string_view membership);

/// Whether `sender` is the service manager of our control group (systemd itself, or that of a
/// user), and `command` is in that group, too. Stopping a unit, it sends its signal to every
/// process in the group and below, one by one. A process that a manager keeps elsewhere
/// (`systemd-run --scope`, a session of `su -l`) is none of them. False where /proc does not show
/// it.
bool is_managed_by(pid_t sender, pid_t command);

/// The same, given the control groups of the three processes.
bool is_managed_by(std::string_view sender, std::string_view command, std::string_view ours);

}  // namespace redlock::child
