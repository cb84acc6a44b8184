#pragma once

#include <sys/types.h>

namespace redlock::child {

/// Gives this process CPU that the command cannot take from it, by the best means that it is permitted: a real-time priority above
/// the one it was started with, else the highest nice level, else short time slices (Linux 6.12), which only shorten the wait for
/// the CPU. Children inherit all of it, so call it when the command has been forked. Silent where nothing is permitted.
/// Sources: sched(7), sched_setattr(2).
void claim_cpu_share() noexcept;

/// Gives a process that was killed (its first thread) a priority little below that of this one, so that it has the CPU to die. Silent
/// where that is not permitted.
void lend_cpu_share(pid_t killed) noexcept;

/// Gives it up again, for a process that was forked from one that had it and guards nothing.
void give_up_cpu_share() noexcept;

/// Moves this process into a session, and so a scheduling group (autogroup, sched(7)), of its own. A leader of its process group
/// cannot found a session, so it passes through `group`, another one of the session that it leaves. Where that fails it stays.
void leave_session(pid_t group) noexcept;

}  // namespace redlock::child
