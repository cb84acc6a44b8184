#pragma once

#include <string_view>

#include "cli/settings.hpp"
#include "output/console.hpp"
#include "run/session.hpp"

namespace redlock::cli {

/// Writes a command's result to stdout; throws CommandError (os_error) when it cannot, since the
/// failure would go unnoticed otherwise.
void print_result(std::string_view text);

/// The options of this command's session.
run::SessionOptions session_options(const Settings& settings);

/// The console as the settings configure it.
output::Console make_console(const Settings& settings);

}  // namespace redlock::cli
