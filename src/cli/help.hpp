#pragma once

#include <string>

#include "cli/command_line.hpp"

namespace redlock::cli {

/// The text for --help or --version, folded to the width of the terminal that stdout is, or to 80
/// columns; empty when the command line asks for neither.
std::string information(const CommandLine& line);

/// The most useful commands, in five lines.
std::string overview();

}  // namespace redlock::cli
