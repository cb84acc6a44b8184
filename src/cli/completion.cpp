#include "commands/completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/commands.hpp"
#include "cli/read_server_options.hpp"
#include "cli/redact.hpp"
#include "cli/suggestions.hpp"
#include "commands/command_error.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

using Kind = Suggestions::Kind;

/// The names of the kinds in the scripts of completions/, in the order of the enumeration.
constexpr std::array<std::string_view, 7> kind_names{"words",       "beginnings", "words",  "files",
                                                     "directories", "pid",        "command"};

/// The prefix of the key, from the typed word. Empty if the shell may read that word differently,
/// because of quotes or the like.
std::string key_beginning(const std::string& typed) {
  const auto is_plain = [](char c) {
    return is_letter_or_digit(c) || std::string_view("_-./:@%+,").find(c) != std::string_view::npos;
  };
  return std::ranges::all_of(typed, is_plain) ? typed : std::string();
}

/// The locked keys with this prefix on the servers that these words, or the settings, name.
std::vector<std::string> locked_keys(const std::vector<std::string>& words, std::string prefix) {
  CommandLine line;
  try {
    read_command_line(words, line);
  } catch (const CommandError&) {  // an unfinished command line
  }
  if (line.command == nullptr) return {};
  const Settings settings(line);
  const commands::ServerOptions servers = read_server_options(settings);
  commands::SessionOptions options = session_options(settings);
  options.identifies_servers = false;
  commands::Session session(options, servers, commands::completion_timeout);
  return commands::locked_keys(session, std::move(prefix));
}

/// Whether the shell can handle the suggestion: it shows keys unescaped, reads one per line, and
/// would mistake a leading quote for one that the user typed. Backslashes are harmless.
bool may_be_suggested(std::string key) {
  if (key.starts_with('"') || key.starts_with('\'')) return false;
  std::erase(key, '\\');
  return escape_for_terminal(key) == key;
}

/// The first line has the kind, and the prefix or the number of CMD's first word. Each further line
/// is a suggestion, with its meaning after a tab.
std::string suggestions_text(const std::vector<std::string>& words) {
  Suggestions suggestions = suggest(words);
  std::string text =
      fmt::format("{}\t{}\n", kind_names.at(static_cast<std::size_t>(suggestions.kind)),
                  suggestions.kind == Kind::command ? std::to_string(suggestions.command_word)
                                                    : suggestions.prefix);
  if (suggestions.kind == Kind::keys) {
    std::vector<std::string> keys;
    try {
      const std::string typed = words.back().substr(suggestions.prefix.size());
      keys = locked_keys({words.begin(), words.end() - 1}, key_beginning(typed));
    } catch (const std::exception&) {  // without answers there are no keys to suggest
    }
    for (const std::string& key : keys) {
      if (may_be_suggested(key)) text += key + "\n";
    }
  }
  for (const Suggestions::Word& word : suggestions.words) {
    text += word.text + (word.help.empty() ? "" : "\t" + word.help) + "\n";
  }
  return text;
}

std::string names_of_shells() {
  std::vector<std::string_view> names;
  for (const CompletionScript& script : completion_scripts()) names.push_back(script.shell);
  return one_of(names);
}

}  // namespace

commands::ExitAs completion_command(const CommandLine& line) {
  if (line.words.empty()) {
    throw CommandError(ExitCode::usage, "completion: name a shell: " + names_of_shells());
  }
  const std::string& word = line.words.front();
  if (word == "suggest") {
    std::vector<std::string> words(line.words.begin() + 1, line.words.end());
    if (words.empty()) words.emplace_back();
    commands::print_result(suggestions_text(words));
    return {};
  }
  if (line.words.size() > 1) {
    throw CommandError(ExitCode::usage,
                       "unexpected argument " + shell_word(shown_word(line.words[1])));
  }
  for (const CompletionScript& script : completion_scripts()) {
    if (word != script.shell) continue;
    commands::print_result(script.text);
    return {};
  }
  throw CommandError(ExitCode::usage,
                     fmt::format("completion: there is none for {}; the shell is {}",
                                 shell_word(shown_word(word)), names_of_shells()));
}

}  // namespace redlock::cli
