#pragma once

#include <string>
#include <string_view>

#include "cli/command_line.hpp"
#include "cli/command_table.hpp"

/// What a wrong word of the command line probably means. Each hint begins with `; `, for the end of
/// a message, or is empty. No hint proposes to stop a command or to break a lock because of a
/// misspelling alone.
namespace redlock::cli {

/// For the name of a command that does not exist.
std::string hint_for_command(std::string_view word);

/// For an option that this command does not have; without its value.
std::string hint_for_option(std::string_view name, const CommandSpec& command);

/// For an option that other commands have, and this one does not: what it has in its place.
std::string hint_for_option_of_others(std::string_view name, const CommandSpec& command);

/// For an unknown option before the name of a command: what it is with `run`.
std::string hint_before_command(std::string_view name);

/// The whole message for a `run` without a key: where it belongs, and the line to write.
std::string missing_key_text(const CommandLine& line);

/// For a command of `run` that was not found: it is text for a shell, or redis-cli's socket.
std::string hint_for_program(const std::string& name);

}  // namespace redlock::cli
