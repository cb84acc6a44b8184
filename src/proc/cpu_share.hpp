#pragma once

#include <sys/types.h>

namespace redlock::proc {

/// Gives this process CPU time that the command cannot take from it, by the best means permitted: a
/// real-time priority above the one it was started with; else the highest permitted priority
/// (lowest nice value); else short time slices (Linux 6.12), which only shorten the wait for the
/// CPU. Raises the limit on its CPU time (RLIMIT_CPU) as far as permitted. Children inherit all of
/// this, so call it after the command was forked. Does nothing, without an error, where none of it
/// is permitted. Sources: sched(7), sched_setattr(2).
void claim_cpu_share() noexcept;

/// Gives the first thread of a killed process a priority slightly below our own, so that it gets
/// the CPU that it needs to die. Does nothing where that is not permitted.
void lend_cpu_share(pid_t killed) noexcept;

/// Whether lend_cpu_share() gives a real-time priority. If so, the first thread of a killed process
/// does not wait for its turn; its other threads still do.
bool lends_real_time() noexcept;

/// Undoes claim_cpu_share() in a child that inherited it and guards no process.
void give_up_cpu_share() noexcept;

/// Moves this process into a session of its own, and thereby into a scheduling group of its own
/// (autogroup, sched(7)). The leader of a process group cannot create a session, so it first joins
/// `group`, another group of its session. Afterwards it has no controlling terminal. On failure it
/// stays in its session.
void leave_session(pid_t group) noexcept;

}  // namespace redlock::proc
