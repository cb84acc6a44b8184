#include "cli/suggestions.hpp"

#include <algorithm>
#include <csignal>
#include <optional>
#include <string_view>

#include "cli/command_line.hpp"
#include "cli/command_table.hpp"
#include "cli/option_rows.hpp"
#include "cli/spelling.hpp"
#include "guard/signals.hpp"
#include "store/registry.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

using Kind = Suggestions::Kind;

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

/// The first clause of an option's help, on one line of a terminal.
std::string in_short(std::string_view help) {
  constexpr std::size_t max_bytes = 80;
  for (const std::string_view end : {"; ", ": ", " ("}) {
    help = help.substr(0, help.find(end));
  }
  return shortened(help, max_bytes);
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

/// The position of the cursor behind the words after the command's name.
struct Position {
  const OptionRow* awaiting = nullptr;  ///< the option whose value is being typed
  std::size_t plain_words = 0;          ///< the number of words before it that no option takes
  bool after_dashes = false;
  std::size_t command_word = 0;  ///< the number of the word that begins CMD; 0: none yet
};

Position position_in(const CommandSpec& command, const std::vector<std::string>& words,
                     WordReader& reader) {
  Position position;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    const bool had_ended = reader.has_ended();
    reader.read(words[i]);
    if (had_ended || !reader.has_ended()) continue;
    position.after_dashes = words[i] == "--";
    if (command.operands == Operands::command)
      position.command_word = position.after_dashes ? i + 1 : i;
  }
  position.awaiting = reader.awaiting();
  position.plain_words = reader.rest().size();
  return position;
}

/// The suggestions for a value that is attached to an option in the typed word; nullopt if none is.
std::optional<Suggestions> attached_values(const std::string& typed, WordReader& reader) {
  const WordReader::Split split = reader.split(typed);
  if (split.parts.empty() || !split.unknown.empty()) return std::nullopt;
  const auto& [option, spelled, value] = split.parts.back();
  if (!value) return std::nullopt;
  Suggestions suggestions = values_of(*option, *value);
  suggestions.prefix.insert(0, typed.substr(0, typed.size() - value->size()));
  return suggestions;
}

/// The suggestions for an operand.
Suggestions plain_words_of(const CommandSpec& command, const Position& position) {
  switch (command.operands) {
    case Operands::keys:
      return {Kind::keys, {}};
    case Operands::key:
      return {position.plain_words == 0 ? Kind::keys : Kind::words, {}};
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

  CommandLine line;
  WordReader reader(command->bit, options_end(*command), line);
  const Position position = position_in(*command, words, reader);
  if (position.awaiting != nullptr) return values_of(*position.awaiting, typed);
  if (position.command_word > 0) return {Kind::command, {}, {}, position.command_word};
  const bool takes_command = command->operands == Operands::command;
  if (takes_command && !typed.empty() && !typed.starts_with('-')) {
    return {Kind::command, {}, {}, words.size() - 1};
  }

  if (!position.after_dashes && typed.starts_with('-')) {
    if (auto suggestions = attached_values(typed, reader)) return std::move(*suggestions);
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
