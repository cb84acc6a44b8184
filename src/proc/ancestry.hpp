#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/lease_handle.hpp"

namespace redlock::proc {

/// The identity of the process with this pid; nullopt without /proc, or when there is no such
/// process.
std::optional<ProcessIdentity> identify(pid_t pid);

/// Whether exactly this process, not a later one with the same pid, is an ancestor of ours. A
/// process outside our pid namespace is invisible to us and does not count.
bool is_ancestor(const ProcessIdentity& process);

/// Whether the process that now has this pid is an ancestor of ours.
bool is_ancestor(pid_t pid);

/// Whether the process with this pid and start (ProcessStat::started) is an ancestor of ours.
bool is_ancestor(pid_t pid, unsigned long long started);

/// Whether `pid` is the front process of a `run` of this key (judging by its command line) that
/// keeps the lock until we end, because we are its command or a descendant of it. False for a
/// process that merely outlives the command or has left its tree: the run does not wait for those.
bool is_enclosing_run(pid_t pid, const std::string& key);

/// Whether we are in the machine's initial pid namespace, where PID 1 is the machine's init.
bool in_first_pid_namespace();

/// The processes that a `run` still keeps its lock for after a signal has ended its command: the
/// living members of the command's process group. `front` is the front process of that run, on this
/// host. Empty when there are none, or /proc does not show them.
std::vector<pid_t> awaited_by(pid_t front);

}  // namespace redlock::proc
