#include "cli/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>

#include "cli/hints.hpp"
#include "cli/option_rows.hpp"
#include "cli/redact.hpp"
#include "cli/spelling.hpp"
#include "cli/word_reader.hpp"
#include "commands/command_error.hpp"
#include "store/registry.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw CommandError(ExitCode::usage, why);
}

bool wants_help(const CommandLine& line) {
  return line.find(option::help) != nullptr || line.find(option::help_all) != nullptr;
}

/// A word of the command line, as it is shown in a message.
std::string shown(const std::string& word) {
  return escape_for_terminal(shown_word(word));
}

/// Reads the remaining words after an error, for the options that determine the form in which it is
/// reported (--json, --export, --status-fd).
void read_for_error(std::span<const std::string> words, unsigned commands, CommandLine& line) {
  WordReader reader(commands, WordReader::Until::end, line);
  for (const std::string& word : words) reader.read(word);
}

/// The names of the commands in a bit set.
std::vector<std::string_view> names_of_commands(unsigned commands) {
  std::vector<std::string_view> names;
  for (const CommandSpec& command : command_table()) {
    if ((commands & command.bit) != 0) names.push_back(command.name);
  }
  return names;
}

[[noreturn]] void refuse_command(const std::string& word) {
  const std::string hint = hint_for_command(word);
  if (!hint.empty()) refuse(fmt::format("unknown command '{}'{}", shown(word), hint));
  refuse(fmt::format("unknown command '{}'; the commands are {}", shown(word),
                     fmt::join(names_of_commands(everywhere), ", ")));
}

/// The commands that have an option of this spelling.
std::string commands_with(std::string_view spelling) {
  unsigned commands = 0;
  for (const OptionRow* option : option::all_options) {
    const auto spellings = spellings_of(*option);
    if (std::ranges::find(spellings, spelling) != spellings.end())
      commands |= option->spec().commands;
  }
  return fmt::format("{}", fmt::join(names_of_commands(commands), ", "));
}

/// `command` is null if the option precedes the name of the command.
[[noreturn]] void refuse_option(const std::string& word, const CommandSpec* command) {
  const std::string name = word.substr(0, word.find('='));
  // CLI11 has read the flag of `-n=5`, and leaves `-=5`.
  if (name == "-") refuse("= after an option that takes no value");
  const std::string others = commands_with(name);
  if (command == nullptr) {
    refuse(others.empty() ? "unknown option " + shown(name) + hint_before_command(name)
                          : fmt::format("{} belongs after the command: {}", name, others));
  }
  if (!others.empty()) {
    const std::string hint = hint_for_option_of_others(name, *command);
    refuse(fmt::format("{} is not an option of {}{}", name, command->name,
                       hint.empty() ? ", but of " + others : hint));
  }
  const std::string hint = hint_for_option(name, *command);
  refuse(fmt::format("unknown option {}{} `redlock-cli {} --help`", shown(name),
                     hint.empty() ? "; see" : hint + (hint.ends_with('?') ? " See" : ". See"),
                     command->name));
}

/// Refuses the number of consul's `-n3` or `-n=3`. CLI11 has read the flag -n, and leaves `-3` or
/// `-=3`.
void refuse_count(const CommandLine& line, const std::string& word) {
  const bool may_be = line.find(option::nonblock) != nullptr &&
                      (option::slots.spec().commands & line.command->bit) != 0;
  const std::string count = word.substr(word.starts_with("-=") ? 2 : 1);
  const auto pool = option::slots.type().read(count, count);
  if (!may_be || !pool || !pool->names.empty()) return;
  refuse(fmt::format("-n takes no value; --slots {} lets {} commands run at once", count, count));
}

/// A server after -s or -u at the beginning of these words; empty if there is none.
std::string server_after_option(std::span<const std::string> words) {
  const std::string& option = words.front();
  if (!option.starts_with("-s") && !option.starts_with("-u")) return {};
  const bool is_alone = option.size() == 2 && words.size() > 1;
  std::string after = is_alone ? words[1] : option.substr(2);
  return stores().begins_url(after) ? after : std::string();
}

/// Refuses a server URL in place of an operand.
void refuse_server(const CommandLine& line, const std::string& word) {
  const bool is_url = word.find("://") != std::string::npos;
  if (!is_url && (line.find(option::shared) == nullptr || !stores().begins_url(word))) return;
  const bool takes_keys =
      line.command->operands == Operands::keys || line.command->operands == Operands::key;
  refuse(server_option_hint(word) + (takes_keys ? "; a key like this is named with -k" : ""));
}

/// The operands among the words that CLI11 did not consume. Refuses unknown options.
std::vector<std::string> words_among(const std::vector<std::string>& rest, CommandLine& line) {
  std::vector<std::string> words;
  for (auto word = rest.begin(); word != rest.end(); ++word) {
    if (*word == "--") {
      line.has_dashes = true;
      words.insert(words.end(), word + 1, rest.end());
      break;
    }
    if (looks_like_option(*word)) {
      // The next word may be the value of this option, or begin CMD.
      read_for_error({word + 1, rest.end()}, line.command->bit, line);
      if (const std::string url = server_after_option({word, rest.end()}); !url.empty())
        refuse(server_option_hint(url));
      refuse_count(line, *word);
      refuse_option(*word, line.command);
    }
    if (words.empty()) refuse_server(line, *word);
    words.push_back(*word);
    if (!ends_options(line.command->operands)) continue;
    words.insert(words.end(), word + 1, rest.end());
    break;
  }
  return words;
}

/// Reads `help COMMAND` as `COMMAND --help`.
void explain(const std::vector<std::string>& words, CommandLine& line) {
  line.command = words.empty() ? nullptr : find_command(words.front());
  if (!words.empty() && line.command == nullptr) refuse_command(words.front());
  if (words.size() > 1) refuse("unexpected argument " + shell_word(shown_word(words[1])));
  line.given.push_back({&option::help, {"true"}});
}

void take_words(std::vector<std::string> words, CommandLine& line) {
  switch (line.command->operands) {
    case Operands::command:
    case Operands::shell:
      line.words = std::move(words);
      return;
    case Operands::topic:
      explain(words, line);
      return;
    case Operands::keys:
      if (words.empty()) return;
      if (line.find(option::key) == nullptr) line.given.push_back({&option::key, {}});
      for (CommandLine::Given& given : line.given) {
        if (given.option == &option::key) {
          given.values.insert(given.values.end(), words.begin(), words.end());
        }
      }
      return;
    case Operands::key:
    case Operands::none:
      break;
  }
  if (line.has_dashes) refuse(fmt::format("{} takes no command after --", line.command->name));
  if (words.empty()) return;
  // A second word may be a command, which would not run, so it is no second key.
  const bool takes_key = line.command->operands == Operands::key;
  const std::size_t keys = takes_key && line.find(option::key) == nullptr ? 1 : 0;
  if (words.size() > keys) {
    refuse(fmt::format("unexpected argument {}: {} takes {}", shell_word(shown_word(words[keys])),
                       line.command->name,
                       takes_key ? "one KEY, others with -k, and no command" : "options alone"));
  }
  line.given.push_back({&option::key, std::move(words)});
}

}  // namespace

const CommandLine::Given* CommandLine::find_given(const OptionRow& option) const {
  const auto found = std::ranges::find(given, &option, &Given::option);
  return found == given.end() ? nullptr : &*found;
}

const std::vector<std::string>* CommandLine::find(const OptionRow& option) const {
  const Given* const entry = find_given(option);
  return entry == nullptr ? nullptr : &entry->values;
}

std::string server_option_hint(const std::string& url) {
  return fmt::format("a server is named with a capital -S: -S {}", shell_word(shown_word(url)));
}

std::string host_option_hint(const std::string& host) {
  const std::string url = stores().begins_url(host) ? host : "redis://" + host + ":6379";
  return fmt::format("-h is help; a server is -S {}", shell_word(shown_word(url)));
}

WordReader::Until options_end(const CommandSpec& command) {
  return ends_options(command.operands) ? WordReader::Until::first_word : WordReader::Until::end;
}

void read_command_line(const std::vector<std::string>& arguments, CommandLine& line) {
  WordReader before_name(without_command, WordReader::Until::first_word, line);
  for (const std::string& word : arguments) before_name.read(word);
  const std::span<const std::string> rest = before_name.rest();
  if (before_name.help_requested()) {
    if (arguments.size() > 2 && arguments.front() == "-h" && !looks_like_option(arguments[1]) &&
        find_command(arguments[1]) == nullptr)
      refuse(host_option_hint(arguments[1]));
    return;
  }
  if (before_name.error()) throw CommandError(*before_name.error());
  const bool is_requested = wants_help(line) || line.find(option::version) != nullptr;
  const bool is_known = rest.empty() || !looks_like_option(rest.front());
  if (is_requested && is_known) return;
  if (rest.empty() || rest.front() == "--")
    refuse(fmt::format("name a command: {}", fmt::join(names_of_commands(everywhere), ", ")));

  line.name = rest.front();
  line.command = find_command(line.name);
  if (line.command == nullptr) {
    read_for_error(rest, asks_servers, line);
    if (const std::string url = server_after_option(rest); !url.empty())
      refuse(server_option_hint(url));
    if (looks_like_option(line.name)) refuse_option(line.name, nullptr);
    refuse_command(line.name);
  }

  WordReader after_name(line.command->bit, options_end(*line.command), line);
  for (const std::string& word : rest.subspan(1)) after_name.read(word);
  after_name.end();
  if (after_name.help_requested()) return;
  if (after_name.error()) throw CommandError(*after_name.error());
  const bool is_version = line.command->bit == for_version;
  std::vector<std::string> words = words_among(after_name.rest(), line);
  if (wants_help(line)) return;
  if (line.command->operands == Operands::command) {
    const std::size_t behind = words.size() + (line.has_dashes ? 1 : 0);
    line.options.assign(rest.begin() + 1, rest.end() - static_cast<std::ptrdiff_t>(behind));
  }
  take_words(std::move(words), line);
  if (is_version) line.given.push_back({&option::version, {"true"}});
}

}  // namespace redlock::cli
