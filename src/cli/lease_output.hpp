#pragma once

#include "cli/settings.hpp"
#include "commands/options.hpp"
#include "commands/session.hpp"

namespace redlock::cli {

/// Throws CommandError if `acquire` or `hold` is to print its lease in two formats.
void check_lease_output(const Settings& settings);

/// Reads the options of `acquire` and `hold` that concern what they print or write, and the exit
/// code that a script sees. Throws CommandError.
void read_lease_output(const Settings& settings, commands::AcquireOptions& options);

/// The session options of these commands.
commands::SessionOptions lease_session_options(const Settings& settings);

}  // namespace redlock::cli
