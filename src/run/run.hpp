#pragma once

#include "run/finish.hpp"
#include "run/options.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// `run`: forks the holder process, which waits, runs the command and releases; stands guard in front of it until it has said how it
/// ended. Throws CommandError and std::system_error, both before anything is locked.
Finish run(const RunOptions& options, const SessionOptions& about, const Start& start);

}  // namespace redlock::run
