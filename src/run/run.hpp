#pragma once

#include "run/finish.hpp"
#include "run/options.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// `run`: forks the holder process, which waits, runs the command and releases. Guards it as the
/// front process until it has reported how it ended. Throws CommandError and std::system_error,
/// both before anything is locked.
Finish run(const RunOptions& options, const SessionOptions& about, const Start& start);

}  // namespace redlock::run
