#pragma once

#include <sys/types.h>

#include <set>

namespace redlock::child {

/// Whether every thread of the process was seen stopped (or has ended), so that whatever it forked
/// is there to be found. A process that was sent STOP goes on until it is done with the system call
/// it is in.
bool is_stopped(pid_t pid);

/// Whether the process would be stopped, were it not for a vfork(2): its thread waits in the
/// kernel, unstoppable, until the child execs or ends, and that child is among `stopped`. One that
/// waits for a disk is none.
bool is_vfork_parent_of(pid_t pid, const std::set<pid_t>& stopped);

}  // namespace redlock::child
