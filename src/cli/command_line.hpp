#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_table.hpp"

namespace redlock::cli {

/// What the command line said, uninterpreted.
struct CommandLine {
  const CommandSpec* command = nullptr;
  std::map<std::string, std::vector<std::string>, std::less<>> values;  ///< by option name; a flag once for each time it was given
  std::optional<std::vector<std::string>> after_dashes;                 ///< CMD and its arguments: everything behind the first `--`
};

/// Reads argv (without argv[0]). The command line is split at the first `--` before the option parser sees it, so nothing of CMD is ever
/// taken for an option of ours. Nothing: --help or --version was asked for and has been printed. Throws CommandError (usage).
std::optional<CommandLine> parse_command_line(const std::vector<std::string>& arguments);

}  // namespace redlock::cli
