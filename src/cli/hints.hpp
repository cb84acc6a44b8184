#pragma once

#include <string>
#include <string_view>

#include "cli/command_table.hpp"

/// What a wrong word of the command line probably means. Each hint begins with `; `, for the end of
/// a message, or is empty. No hint proposes to stop a command or to break a lock because of a
/// misspelling alone.
namespace redlock::cli {

/// For the name of a command that does not exist.
std::string hint_for_command(std::string_view word);

/// For an option that this command does not have; without its value.
std::string hint_for_option(std::string_view name, const CommandSpec& command);

/// For a command of `run` that was not found: it is text for a shell.
std::string hint_for_program(std::string_view name);

}  // namespace redlock::cli
