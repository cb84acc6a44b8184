#pragma once

#include <string_view>

#include "cli/settings.hpp"
#include "commands/session.hpp"
#include "output/console.hpp"

namespace redlock::cli {

/// Writes a command's result to stdout. Throws CommandError (os_error) on failure, which would
/// otherwise go unnoticed.
void print_result(std::string_view text);

/// The session options for the command of these settings.
commands::SessionOptions session_options(const Settings& settings);

/// A console with the verbosity and the log of these settings.
output::Console make_console(const Settings& settings);

}  // namespace redlock::cli
