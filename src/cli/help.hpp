#pragma once

#include <string>

#include "cli/command_line.hpp"

namespace redlock::cli {

/// The text for --help or --version, folded to the width of the terminal, or to 80 columns if
/// stdout is none. Empty if the command line requests neither.
std::string help_or_version(const CommandLine& line);

/// The most important commands, in five lines.
std::string overview();

}  // namespace redlock::cli
