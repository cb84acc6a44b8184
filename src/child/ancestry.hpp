#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/lease_handle.hpp"

namespace redlock::child {

/// The identity of this process; nothing without /proc, or when there is no such process.
std::optional<ProcessIdentity> identify(pid_t pid);

/// Whether this very process is an ancestor of ours now. A process outside of our pid namespace is
/// invisible, and so counts as no ancestor.
bool is_ancestor(const ProcessIdentity& process);

/// Whether the process that has this pid now is an ancestor of ours.
bool is_ancestor(pid_t pid);

/// Whether the process with this pid and start (ProcessStat::started) is an ancestor of ours.
bool is_ancestor(pid_t pid, unsigned long long started);

/// Whether this is the front process of a `run` of this key, by its command line, that keeps the
/// lock until we end: we are its command, or an ancestor of ours is. What merely outlives the
/// command, or left its tree, is not waited for.
bool runs_us(pid_t pid, const std::string& key);

/// Whether we are in the machine's initial pid namespace, the one whose PID 1 is the machine's
/// init.
bool in_first_pid_namespace();

/// What the lock of a `run` is still kept for after a signal has ended its command: the living rest
/// of the command's process group. `front`: its front process, on this host. Empty: nothing, or
/// /proc does not show it.
std::vector<pid_t> awaited_by(pid_t front);

}  // namespace redlock::child
