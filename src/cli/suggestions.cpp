#include "cli/suggestions.hpp"

#include <algorithm>
#include <csignal>
#include <string_view>

#include "cli/command_table.hpp"
#include "cli/option_rows.hpp"
#include "cli/spelling.hpp"
#include "guard/signals.hpp"
#include "store/registry.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

using Kind = Suggestions::Kind;

/// The option of these commands with this spelling; null if there is none.
const OptionRow* find_option(unsigned commands, std::string_view spelling) {
  for (const OptionRow* option : option::all_options) {
    if ((option->spec().commands & commands) == 0) continue;
    const auto spellings = spellings_of(*option);
    if (std::find(spellings.begin(), spellings.end(), spelling) != spellings.end()) return option;
  }
  return nullptr;
}

/// A word that begins with a dash, as the parser reads it.
struct OptionWord {
  const OptionRow* with_value = nullptr;  ///< the option with a value in it; null: none
  bool awaits_value = false;              ///< the next word is the value
  std::string prefix{};                   ///< the part before the value: `--ttl=`
};

/// `-nk` awaits the value of -k, `-kn` contains it.
OptionWord read_option_word(unsigned commands, const std::string& word) {
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    const OptionRow* option = find_option(commands, word.substr(0, equals));
    if (option == nullptr || option->kind() == OptionKind::flag) return {};
    const bool needs_value = option->kind() != OptionKind::optional_value;
    if (equals == std::string::npos) return needs_value ? OptionWord{option, true} : OptionWord{};
    return {option, false, word.substr(0, equals + 1)};
  }
  for (std::size_t i = 1; i < word.size(); ++i) {
    const OptionRow* option = find_option(commands, std::string("-") + word[i]);
    if (option == nullptr) return {};
    if (option->kind() == OptionKind::flag) continue;
    if (i + 1 == word.size()) return {option, true};
    return {option, false, word.substr(0, i + 1)};
  }
  return {};
}

Suggestions servers_like(std::string_view typed) {
  Suggestions suggestions;
  suggestions.kind = Kind::beginnings;
  for (const std::string_view prefix : stores().prefixes()) {
    suggestions.words.push_back({std::string(prefix), {}});
  }
  // After these a path follows.
  if (typed.starts_with("local:")) return {Kind::directories, {}, "local:"};
  if (typed.starts_with("unix://")) return {Kind::files, {}, "unix://"};
  return suggestions;
}

/// SIGTERM if SIG was typed, else TERM.
Suggestions signals_like(std::string_view typed) {
  Suggestions suggestions;
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    const std::string name = guard::signal_name(signal);
    if (guard::parse_signal("SIG" + name) != signal) continue;
    suggestions.words.push_back({(typed.starts_with("SIG") ? "SIG" : "") + name, {}});
  }
  return suggestions;
}

/// The suggestions for the value of an option, whose kind follows from its name in --help.
Suggestions values_of(const OptionRow& option, std::string_view typed) {
  const std::string operand = option.operand();
  if (operand == "URL") return servers_like(typed);
  if (operand == "SIG") return signals_like(typed);
  if (operand == "FILE") return {Kind::files, {}};
  if (operand == "DIR") return {Kind::directories, {}};
  if (operand == "PID") return {Kind::pid, {}};
  if (operand == "KEY") return {Kind::keys, {}};
  if (operand.find('|') == std::string::npos) return {};  // any text
  Suggestions suggestions;
  for (std::string_view rest = operand; !rest.empty();)
    suggestions.words.push_back({std::string(next_word(rest, '|')), {}});
  return suggestions;
}

/// The first clause of an option's help.
std::string in_short(std::string_view help) {
  for (const std::string_view end : {"; ", ": ", " (", ", "}) {
    help = help.substr(0, help.find(end));
  }
  return std::string(help);
}

std::vector<Suggestions::Word> options_of(unsigned commands) {
  std::vector<Suggestions::Word> words;
  for (const OptionRow* option : option::all_options) {
    if ((option->spec().commands & commands) == 0) continue;
    for (const std::string_view spelling : spellings_of(*option)) {
      words.push_back({std::string(spelling), in_short(option->spec().help)});
    }
  }
  return words;
}

std::vector<Suggestions::Word> options_of(const CommandSpec& command) {
  std::vector<Suggestions::Word> words = options_of(command.bit);
  if (command.operands == Operands::command) words.push_back({"--", "CMD follows"});
  return words;
}

Suggestions all_commands() {
  Suggestions suggestions;
  for (const CommandSpec& command : command_table()) {
    suggestions.words.push_back({std::string(command.name), std::string(command.summary)});
  }
  return suggestions;
}

/// The position of the cursor within the words after the command's name.
struct Position {
  const OptionRow* awaiting = nullptr;  ///< the option whose value is being typed
  std::size_t plain_words = 0;          ///< the number of operands before it
  bool after_dashes = false;
  std::size_t command_word = 0;  ///< the number of the word that begins CMD; 0: none yet
};

Position read_words(const CommandSpec& command, const std::vector<std::string>& words) {
  const bool takes_command = command.operands == Operands::command;
  Position position;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (position.after_dashes || !looks_like_option(words[i])) {
      ++position.plain_words;
      if (takes_command) position.command_word = i;
    } else if (words[i] == "--") {
      position.after_dashes = true;
      if (takes_command) position.command_word = i + 1;
    } else if (const OptionWord option = read_option_word(command.bit, words[i]);
               option.awaits_value) {
      ++i;
      if (i + 1 == words.size()) position.awaiting = option.with_value;
    }
    if (position.command_word > 0) break;  // all further words belong to CMD
  }
  return position;
}

/// The suggestions for an operand.
Suggestions plain_words_of(const CommandSpec& command, const Position& position) {
  switch (command.operands) {
    case Operands::keys:
      return {Kind::keys, {}};
    case Operands::topic:
      return position.plain_words == 0 ? all_commands() : Suggestions();
    case Operands::shell: {
      Suggestions suggestions;
      if (position.plain_words > 0) return suggestions;
      for (const CompletionScript& script : completion_scripts()) {
        suggestions.words.push_back({std::string(script.shell), {}});
      }
      return suggestions;
    }
    case Operands::command:
    case Operands::none:
      break;
  }
  return {};
}

}  // namespace

Suggestions suggest(const std::vector<std::string>& words) {
  const std::string& typed = words.back();
  if (words.size() == 1) {
    if (!typed.starts_with('-')) return all_commands();
    return {Kind::words, options_of(without_command)};
  }
  const CommandSpec* command = find_command(words.front());
  if (command == nullptr) return {};

  const Position position = read_words(*command, words);
  if (position.awaiting != nullptr) return values_of(*position.awaiting, typed);
  if (position.command_word > 0) return {Kind::command, {}, {}, position.command_word};
  const bool takes_command = command->operands == Operands::command;
  if (takes_command && !typed.empty() && !typed.starts_with('-')) {
    return {Kind::command, {}, {}, words.size() - 1};
  }

  if (!position.after_dashes && typed.starts_with('-')) {
    const OptionWord option = read_option_word(command->bit, typed);
    if (option.with_value != nullptr && !option.awaits_value) {
      Suggestions suggestions =
          values_of(*option.with_value, std::string_view(typed).substr(option.prefix.size()));
      suggestions.prefix.insert(0, option.prefix);
      return suggestions;
    }
    return {Kind::words, options_of(*command)};
  }

  Suggestions suggestions = plain_words_of(*command, position);
  // An empty word may also become an option.
  if (typed.empty() && !position.after_dashes) {
    for (Suggestions::Word& word : options_of(*command)) {
      suggestions.words.push_back(std::move(word));
    }
  }
  return suggestions;
}

}  // namespace redlock::cli
