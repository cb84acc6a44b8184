#pragma once

#include <sys/types.h>

#include <atomic>

namespace redlock::child {

/// Whether this process has children, or may be given some, that were never below its holder process: a shell's background jobs
/// (`helper & exec redlock-cli run …`), or as PID 1 whatever is orphaned in its container.
bool may_have_foreign_children() noexcept;

/// Between a front process with foreign children and its holder process: all that comes out of the holder is left to this process,
/// and none of the foreign children's orphans are. It does nothing until the holder has ended. One that exits with 0 has done its
/// work, and what it left may live. Else this kills what the holder left, and exits with 0 when all of that is dead.
///
/// Forks the holder and writes its pid to `holder`. Returns in the holder alone; throws std::system_error when it cannot fork.
void become_shield(std::atomic<pid_t>& holder);

}  // namespace redlock::child
