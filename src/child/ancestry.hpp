#pragma once

#include <sys/types.h>

#include <optional>

#include "core/parent_lease.hpp"

namespace redlock::child {

/// Who this process is; nothing without /proc, or when there is no such process.
std::optional<ProcessIdentity> identify(pid_t pid);

/// Whether this very process is an ancestor of ours now. One that is outside of our pid namespace is not seen, and so is none.
bool is_ancestor(const ProcessIdentity& process);

/// Whether the process that has this pid now is an ancestor of ours.
bool is_ancestor(pid_t pid);

/// Whether we are in the pid namespace that the machine was started with: PID 1 is its init.
bool in_first_pid_namespace();

}  // namespace redlock::child
