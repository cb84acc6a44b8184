#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cli/option_types.hpp"

namespace redlock::cli {

/// The meaning of a command's operands: the words that are neither options nor their values.
enum class Operands {
  none,
  command,  ///< CMD and its arguments; CMD ends the options
  keys,     ///< keys, as if each followed -k
  key,      ///< one key in place of -k
  topic,    ///< the command to explain
  shell,    ///< a shell; or `suggest` and the words of a command line
};

/// Whether the first operand ends the options.
constexpr bool ends_options(Operands operands) {
  return operands == Operands::command || operands == Operands::shell;
}

struct CommandSpec {
  Commands bit;
  std::string_view name;
  Operands operands;
  std::string_view usage;    ///< the synopsis after `redlock-cli NAME`
  std::string_view summary;  ///< one line
  std::string_view details;  ///< for --help: paragraphs, and indented examples
};

std::span<const CommandSpec> command_table();

/// One or more exit codes with their meaning.
struct CodeMeaning {
  std::string_view codes;
  std::string_view meaning;
};

/// The exit codes of a command, or those of the whole program for without_command. --help shows
/// them, and a test compares redlock-cli(1) with them.
std::vector<CodeMeaning> exit_codes_of(Commands command);

/// Null when no command has this name.
const CommandSpec* find_command(std::string_view name);

}  // namespace redlock::cli
