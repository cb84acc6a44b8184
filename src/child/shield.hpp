#pragma once

#include <sys/types.h>

#include <atomic>

#include "support/unique_fd.hpp"

namespace redlock::child {

/// Whether this process has children, or may inherit some, that were never below its holder
/// process: a shell's background jobs (`helper & exec redlock-cli run …`), or as PID 1 the orphans
/// of its container.
bool may_have_foreign_children() noexcept;

/// A process between the holder process and a front process that has children of others. When the
/// holder process has ended, its orphans become children of the shield alone; without a shield they
/// would become children of the front process, which could not tell them from those of others.
///
/// The shield waits for the holder process. If that exited with 0, its remaining descendants may
/// live, and the shield exits. Otherwise it kills them, and exits with 0 when all of them are dead.
///
/// When the shield is killed, the holder process ends the command. When it is stopped, the front
/// process continues it, because it waits for the shield's end.
struct Shield {
  pid_t pid = 0;      ///< 0: there is none
  UniqueFd lifeline;  ///< reads end of file once it has ended
};

/// Forks the holder process and writes its pid to `holder`. Returns in the holder process alone.
/// Where it cannot fork, this process exits with 71, and `holder` stays 0.
Shield become_shield(std::atomic<pid_t>& holder);

}  // namespace redlock::child
