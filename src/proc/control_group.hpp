#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace redlock::proc {

/// The control group by which systemd tracks a process, from the text of its /proc/PID/cgroup: the
/// one in systemd's own hierarchy if there is one, else the one of version 2. Nullopt when there is
/// neither.
std::optional<std::string> tracked_group_in(std::string_view membership);

/// Whether `sender` is the service manager of our control group (systemd itself, or a user's
/// instance), and `command` is in that group, too. When such a manager stops a unit, it signals
/// every process in the group and below, one by one. It does not reach a process in another control
/// group (`systemd-run --scope`, a session of `su -l`). False where /proc does not show the groups.
bool is_managed_by(pid_t sender, pid_t command);

/// The same, given the control groups of the three processes.
bool is_managed_by(std::string_view sender, std::string_view command, std::string_view ours);

}  // namespace redlock::proc
