#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command_table.hpp"
#include "cli/option_types.hpp"
#include "cli/word_reader.hpp"

namespace redlock::cli {

/// The parsed command line. Values are still text, but each is valid for its option's type.
struct CommandLine {
  struct Given {
    const OptionRow* option;
    std::vector<std::string> values;  ///< a flag has one for each occurrence
    std::string_view typed{};         ///< its spelling on the line; empty if it has none there
  };

  std::string name;                      ///< the command as it was typed
  const CommandSpec* command = nullptr;  ///< null: no command has that name
  std::vector<Given> given;
  std::vector<std::string> words;    ///< CMD with its arguments, or the operands of other commands
  bool has_dashes = false;           ///< `--` preceded the words
  std::vector<std::string> options;  ///< what preceded CMD, as typed

  /// The option with its values; null when it was not given.
  [[nodiscard]] const Given* find_given(const OptionRow& option) const;

  /// The option's values; null when it was not given.
  [[nodiscard]] const std::vector<std::string>* find(const OptionRow& option) const;
};

/// Reads argv (without argv[0]) into `line`. Throws CommandError (usage) only after all words have
/// been read, so that `line` has the options that determine the form of the error message. A
/// request for --help or --version is never an error. `help COMMAND` is read as `COMMAND --help`,
/// and `version` as --version.
void read_command_line(const std::vector<std::string>& arguments, CommandLine& line);

/// Where the options of this command end.
WordReader::Until options_end(const CommandSpec& command);

/// For a server after -s, which means a shared lock here, as in flock(1), or after redis-cli's -u.
std::string server_option_hint(const std::string& url);

/// For redis-cli's `-h HOST`.
std::string host_option_hint(const std::string& host);

}  // namespace redlock::cli
