#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_table.hpp"
#include "cli/option.hpp"

namespace redlock::cli {

/// What the command line said. Values are text still, but each is one of its option's type.
struct CommandLine {
  struct Given {
    const OptionRow* option;
    std::vector<std::string> values;  ///< a flag has one for each time it was given
  };

  std::string name;                      ///< the command as it was typed
  const CommandSpec* command = nullptr;  ///< null: there is none of that name
  std::vector<Given> given;
  std::vector<std::string> words;  ///< CMD and its arguments, or what is to be explained
  bool has_dashes = false;         ///< `--` stood before the words

  /// The option's values; null when it was not given.
  [[nodiscard]] const std::vector<std::string>* find(const OptionRow& option) const;
};

/// Reads argv (without argv[0]) into `line`. Throws CommandError (usage) at the end, so that `line`
/// says then, too, in which form the error is to be told. A line that asks for --help or --version
/// is no error; `help COMMAND` is read as `COMMAND --help`, and `version` as --version.
void read_command_line(const std::vector<std::string>& arguments, CommandLine& line);

}  // namespace redlock::cli
