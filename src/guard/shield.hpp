#pragma once

#include <sys/types.h>

#include <atomic>

#include "support/unique_fd.hpp"

namespace redlock::guard {

/// Whether this process has, or may inherit, children that do not come from its holder process: a
/// shell's background jobs (`helper & exec redlock-cli run …`), or, for PID 1, the orphans of its
/// container.
bool may_have_foreign_children() noexcept;

/// A process between the holder process and a front process that has foreign children. When the
/// holder process ends, its orphans become children of the shield. Without a shield they would
/// become children of the front process, which could not tell them from the foreign ones.
///
/// The shield waits for the holder process. If that exits with 0, its remaining descendants may
/// live on, and the shield exits. Otherwise the shield kills them, and exits with 0 once all of
/// them are dead.
///
/// When the shield is killed, the holder process kills the command. When it is stopped, the front
/// process continues it, because it must wait for the shield to end.
struct Shield {
  pid_t pid = 0;      ///< 0: there is none
  UniqueFd lifeline;  ///< reads end of file once the shield has ended
};

/// Turns this process into a shield: forks the holder process and writes its pid to `holder`.
/// Returns in the holder process only. If the fork fails, this process exits with 71, and `holder`
/// stays 0.
Shield become_shield(std::atomic<pid_t>& holder);

}  // namespace redlock::guard
