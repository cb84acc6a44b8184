#pragma once

#include <sys/types.h>

#include <set>

namespace redlock::proc {

/// Whether every thread of the process is stopped or has ended, so that it forks no more and all
/// its children can be found. Check this after sending STOP, because a process runs on until it
/// leaves its current system call.
bool is_stopped(pid_t pid);

/// Whether only a vfork(2) keeps the process from being stopped: one of its threads waits
/// uninterruptibly in the kernel until its child, which is among `stopped`, calls exec or ends.
/// False for a process that waits for a disk.
bool is_vfork_parent_of(pid_t pid, const std::set<pid_t>& stopped);

}  // namespace redlock::proc
