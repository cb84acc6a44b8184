#pragma once

#include <sys/types.h>

#include <atomic>

#include "support/unique_fd.hpp"

namespace redlock::child {

/// Whether this process has children, or may inherit some, that were never below its holder
/// process: a shell's background jobs (`helper & exec redlock-cli run …`), or as PID 1 the orphans
/// of its container.
bool may_have_foreign_children() noexcept;

/// Between a front process with foreign children and its holder process. Orphans of the holder
/// process are reparented to this process, and no orphans of the foreign children are. It does
/// nothing until the holder process has ended. If that exited with 0, it has done its work, and its
/// remaining descendants may live. Otherwise this process kills them, and exits with 0 when all of
/// them are dead.
///
/// Without it orphans would go to the front process, which cannot tell them from others. So the
/// holder process ends the command when it is killed. The front process continues it when it is
/// stopped: everything waits for its end.
struct Shield {
  pid_t pid = 0;      ///< 0: there is none
  UniqueFd lifeline;  ///< reads end of file once it has ended
};

/// Forks the holder process and writes its pid to `holder`. Returns in the holder process alone.
/// Where it cannot fork, this process exits with 71, and `holder` stays 0.
Shield become_shield(std::atomic<pid_t>& holder);

}  // namespace redlock::child
