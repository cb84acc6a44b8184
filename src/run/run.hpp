#pragma once

#include "run/finish.hpp"
#include "run/options.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// `run`: forks the holder process, which waits for the lock, runs the command and releases;
/// meanwhile guards both as the front process. Throws CommandError and std::system_error, both only
/// before anything is locked.
Finish run(const RunOptions& options, const SessionOptions& about, const Start& start);

}  // namespace redlock::run
