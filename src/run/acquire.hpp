#pragma once

#include "run/finish.hpp"
#include "run/options.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// `acquire`: waits for the locks and writes the tokens to stdout. With --while-pid or --detach, a
/// holder process stays in the background and keeps the leases. Throws CommandError and
/// std::system_error.
Finish acquire(AcquireOptions options, const SessionOptions& about, const Start& start);

}  // namespace redlock::run
