#pragma once

#include "cli/settings.hpp"
#include "commands/session.hpp"
#include "output/console.hpp"

namespace redlock::cli {

/// The session options for the command of these settings.
commands::SessionOptions session_options(const Settings& settings);

/// A console with the verbosity and the log of these settings.
output::Console make_console(const Settings& settings);

}  // namespace redlock::cli
