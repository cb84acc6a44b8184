#pragma once

#include <sys/types.h>

namespace redlock::child {

/// Reserves CPU time for this process that the command cannot take from it, by the best permitted
/// means: a real-time priority above the one it was started with, else the highest nice level, else
/// short time slices (Linux 6.12), which only shorten the wait for the CPU. Lifts the limit on its
/// CPU time (RLIMIT_CPU) as far as permitted. Children inherit all of it, so call it after the
/// command was forked. Silent where nothing is permitted. Sources: sched(7), sched_setattr(2).
void claim_cpu_share() noexcept;

/// Gives a killed process (its first thread) a priority slightly below that of this one, so that it
/// gets the CPU to die. Silent where that is not permitted.
void lend_cpu_share(pid_t killed) noexcept;

/// Whether lend_cpu_share() gives a real-time priority: then what is killed does not wait for its
/// turn, but for other threads than its first.
bool lends_real_time() noexcept;

/// Undoes the above, for a process that was forked from one that had it and guards nothing.
void give_up_cpu_share() noexcept;

/// Moves this process into a session, and so a scheduling group (autogroup, sched(7)), of its own.
/// The leader of a process group cannot create a session, so it first moves to `group`, another
/// group of its session. From then on it has no controlling terminal. Where that fails it stays.
void leave_session(pid_t group) noexcept;

}  // namespace redlock::child
