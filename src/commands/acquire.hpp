#pragma once

#include "commands/exit_as.hpp"
#include "commands/options.hpp"
#include "commands/session.hpp"

namespace redlock::commands {

/// `acquire`: waits for the locks and writes the tokens to stdout. With --while-pid or --detach, a
/// holder process stays in the background and keeps the leases. Throws CommandError and
/// std::system_error.
ExitAs acquire(AcquireOptions options, const SessionOptions& about, const Start& start);

}  // namespace redlock::commands
