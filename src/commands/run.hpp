#pragma once

#include "commands/exit_as.hpp"
#include "commands/options.hpp"
#include "commands/session.hpp"

namespace redlock::commands {

/// `run`: forks the holder process, which waits for the lock, runs the command and releases;
/// meanwhile guards both as the front process. Throws CommandError and std::system_error, both only
/// before anything is locked.
ExitAs run(const RunOptions& options, const SessionOptions& about, const Start& start);

}  // namespace redlock::commands
