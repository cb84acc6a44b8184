#pragma once

#include <sys/types.h>

#include <set>

namespace redlock::child {

/// Whether every thread of the process was seen stopped (or has ended), so that all its children
/// are there to be found. A process that was sent STOP continues until it leaves its current system
/// call.
bool is_stopped(pid_t pid);

/// Whether the process would be stopped if it were not in a vfork(2): its thread waits in the
/// kernel, unstoppable, until the child execs or ends, and that child is among `stopped`. A process
/// that waits for a disk is not meant.
bool is_vfork_parent_of(pid_t pid, const std::set<pid_t>& stopped);

}  // namespace redlock::child
