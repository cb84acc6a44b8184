#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "run/command_error.hpp"
#include "output/exit_code.hpp"
#include "cli/redact.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

constexpr const char* version = REDLOCK_VERSION;

std::string exit_code_help() {
  std::string text = "\nExit codes:\n";
  for (const ExitCodeMeaning& row : exit_codes) text += fmt::format("  {:3}  {}\n", to_int(row.code), row.meaning);
  text += "  126, 127  run: CMD cannot be executed, is not found; otherwise run exits as CMD did\n";
  return text;
}

constexpr std::string_view common_help =
    "\nDurations: 500ms, 30s, 5m, 2h, 1d; a bare number is seconds."
    "\nMost options can also be set as REDLOCK_NAME, in ~/.config/redlock-cli/config.toml or in"
    "\n/etc/redlock-cli.toml. The manual: man redlock-cli\n";

/// What a word of the command line names, among the options of some commands.
struct Named {
  const OptionSpec* option = nullptr;
  bool takes_next = false;  ///< its value is the next word
};

const OptionSpec* option_spelt(std::string_view spelling, unsigned commands) {
  for (const OptionSpec& option : option_table()) {
    if ((option.commands & commands) == 0) continue;
    if (fmt::format(",{},", option.flags).find(fmt::format(",{},", spelling)) != std::string::npos) return &option;
  }
  return nullptr;
}

/// Of several letters behind one dash, the one that takes a value, or the last.
Named named_by(const std::string& word, unsigned commands) {
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    const OptionSpec* option = option_spelt(word.substr(0, equals), commands);
    return {option, option != nullptr && option->kind != OptionKind::flag && equals == std::string::npos};
  }
  Named named;
  if (!word.starts_with('-')) return named;
  for (std::size_t i = 1; i < word.size(); ++i) {
    named.option = option_spelt(std::string("-") + word[i], commands);
    if (named.option == nullptr) break;
    named.takes_next = named.option->kind != OptionKind::flag && i + 1 == word.size();
    if (named.option->kind != OptionKind::flag) break;
  }
  return named;
}

/// CLI11 takes the next word for the value of `--name=`; what was meant, most often by a variable that is not set, is an empty one.
std::vector<std::string> with_empty_values(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  bool is_value = false;
  for (const std::string& word : arguments) {
    if (!is_value && word.starts_with("--") && word.find('=') == word.size() - 1) {
      words.push_back(word.substr(0, word.size() - 1));
      words.emplace_back();
    } else {
      words.push_back(word);
    }
    is_value = !is_value && named_by(word, every_command).takes_next;
  }
  return words;
}

/// The value of an option that stands in a word of its own must not look like an option: most often it is one, behind a variable that is
/// not set (`-k $UNSET -n`).
void demand_clear_values(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    const Named named = named_by(arguments[i], every_command);
    if (!named.takes_next) continue;
    ++i;
    const std::string& value = arguments[i];
    if (value.size() < 2 || value.front() != '-') continue;
    const std::string shown = shell_word(shown_word(value));
    throw CommandError(ExitCode::usage, fmt::format("--{} needs a value, and {} looks like an option; if it is the value, write --{}={}",
                                                    named.option->name, shown, named.option->name, shown));
  }
}

/// CLI11's help, with usage lines of our own: its own would say neither -k nor --.
class Formatter : public CLI::Formatter {
 public:
  explicit Formatter(const CommandSpec& command) : command_(command) {
    column_width(34);  // two spaces behind the longest option
  }
  std::string make_usage(const CLI::App*, std::string) const override {
    return fmt::format("\nUsage: redlock-cli {} {}\n", command_.name, command_.usage);
  }

 private:
  const CommandSpec& command_;
};

/// Whether the words may name this option: with its long name, or with its letter among others behind one dash.
bool may_name(const std::vector<std::string>& words, const OptionSpec& option) {
  std::string_view spellings = option.flags;
  while (!spellings.empty()) {
    const std::string_view spelling = spellings.substr(0, spellings.find(','));
    spellings.remove_prefix(std::min(spelling.size() + 1, spellings.size()));
    const bool is_long = spelling.starts_with("--");
    for (const std::string& word : words) {
      if (is_long ? word.starts_with(spelling) : word.starts_with('-') && word.find(spelling[1], 1) != std::string::npos) return true;
    }
  }
  return false;
}

bool may_ask_for_help(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word.starts_with('-') && word.find('h') != word.npos; });
}

/// A subcommand's CLI11 object with the options of the table that belong to it.
class Parser {
 public:
  /// Options cost time at every start, so only those are there that the words may name; a help shows all.
  explicit Parser(const std::vector<std::string>& words)
      : app_("A lock for shell scripts, cron jobs and CI pipelines, on Redis or Valkey", "redlock-cli") {
    app_.set_version_flag("-V,--version", std::string("redlock-cli ") + version);
    app_.require_subcommand(1);
    app_.footer("\n`redlock-cli COMMAND --help` explains a command.\n" + exit_code_help());
    const bool all = may_ask_for_help(words);
    for (const CommandSpec& command : command_table()) {
      CLI::App* sub = app_.add_subcommand(std::string(command.name), std::string(command.summary));
      if (words.empty() || command.name != words.front()) continue;
      sub->formatter(std::make_shared<Formatter>(command));
      sub->footer("\n" + std::string(command.details) + "\n" + std::string(common_help) + exit_code_help());
      for (const OptionSpec& option : option_table()) {
        if ((option.commands & command.bit) != 0 && (all || may_name(words, option))) add(*sub, option);
      }
    }
  }

  /// False: help or version was printed.
  bool parse(std::vector<std::string> arguments) {
    const std::vector<std::string> words = arguments;
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes a vector from its end
    try {
      app_.parse(std::move(arguments));
      return true;
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0)
        throw CommandError(ExitCode::usage,
                           escape_for_terminal(shown_message(error.what(), words)));
      app_.exit(error);  // prints the help or the version
      return false;
    }
  }

  [[nodiscard]] CommandLine result() const {
    CommandLine line;
    const CLI::App* chosen = app_.get_subcommands().front();
    const auto commands = command_table();
    line.command =
        &*std::find_if(commands.begin(), commands.end(), [&](const CommandSpec& command) { return command.name == chosen->get_name(); });
    for (const OptionSpec& option : option_table()) {
      if (!(option.commands & line.command->bit)) continue;
      const CLI::Option* given = chosen->get_option_no_throw(long_spelling(option));
      if (given == nullptr || given->count() == 0) continue;
      // CLI11 takes --flag=anything; whoever writes --force=false must not get the opposite.
      const bool has_value =
          std::any_of(given->results().begin(), given->results().end(), [](const std::string& text) { return text != "true"; });
      if (option.kind == OptionKind::flag && has_value) throw CommandError(ExitCode::usage, long_spelling(option) + " takes no value");
      line.values[std::string(option.name)] = given->results();
    }
    return line;
  }

 private:
  static std::string long_spelling(const OptionSpec& option) { return "--" + std::string(option.name); }

  static void add(CLI::App& sub, const OptionSpec& option) {
    const std::string flags(option.flags);
    const std::string help(option.help);
    if (option.kind == OptionKind::flag) {
      sub.add_flag(flags, help);
      return;
    }
    CLI::Option* added = sub.add_option(flags, help)->type_name(std::string(option.operand));
    // Exactly one word each time, taken as it is, also when it looks like an option or is empty.
    added->expected(1)->allow_extra_args(false);
    added->multi_option_policy(option.kind == OptionKind::list ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::Throw);
  }

  CLI::App app_;
};

bool names_command(const std::vector<std::string>& arguments, std::string_view name) {
  return !arguments.empty() && arguments.front() == name;
}

void demand_known_command(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with('-')) return;
  std::string known;
  for (const CommandSpec& command : command_table()) {
    if (command.name == arguments.front()) return;
    known += known.empty() ? "" : ", ";
    known += command.name;
  }
  const std::string word = escape_for_terminal(shown_word(arguments.front()));
  throw CommandError(ExitCode::usage, fmt::format("there is no command {}; the commands are {}", word, known));
}

/// `-s` means a shared lock to flock(1) users; with a URL behind it, the server was meant.
void hint_at_server_option(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    const std::string& next = arguments[i + 1];
    const bool is_url = next.find("://") != std::string::npos || next.starts_with("unix:") ||
                        next.starts_with("local:");
    if (arguments[i] == "-s" && is_url) {
      throw CommandError(ExitCode::usage, "a server is named with a capital -S: -S " +
                                              escape_for_terminal(shown_word(next)));
    }
  }
}

/// `run` with -- before word number `command`, and with a key if there is none.
std::string corrected_line(const std::vector<std::string>& arguments, std::size_t command, bool has_key) {
  std::string line = "redlock-cli";
  for (std::size_t word = 0; word < arguments.size(); ++word) {
    if (word == command) line += " --";
    line += " " + shell_word(shown_word(arguments[word]));
    if (word == 0 && !has_key) line += " -k KEY";
  }
  if (command == arguments.size()) line += " -- CMD";
  return line;
}

/// Ends a `run` without `--`, unless it asks for help or names a shell text. What stands behind the command's name is the command's.
void demand_dashes(const std::vector<std::string>& arguments) {
  bool asks_for_help = false;
  bool has_text = false;
  bool has_key = false;
  std::size_t command = 1;  // the first word that is neither an option of ours nor the value of one
  while (command < arguments.size() && arguments[command].starts_with('-')) {
    const std::string& word = arguments[command];
    const Named named = named_by(word, for_run);
    if (word == "-h" || word == "--help") asks_for_help = true;
    if (named.option != nullptr && named.option->name == "command") has_text = true;
    if (named.option != nullptr && named.option->name == "key") has_key = true;
    command += named.takes_next ? 2 : 1;
  }
  if (command > arguments.size()) return;  // the parser says which value is missing
  if (has_text && command < arguments.size()) {
    throw CommandError(ExitCode::usage,
                       fmt::format("-c takes one word, the whole text for the shell, and {} is one too many: put all of it in quotes",
                                   shell_word(shown_word(arguments[command]))));
  }
  if (asks_for_help || has_text) return;
  throw CommandError(ExitCode::usage, "run needs -- before the command: " + corrected_line(arguments, command, has_key));
}

}  // namespace

std::optional<CommandLine> parse_command_line(const std::vector<std::string>& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const std::vector<std::string> ours(arguments.begin(), dashes);
  hint_at_server_option(ours);
  demand_known_command(ours);
  demand_clear_values(ours);
  if (names_command(ours, "run") && dashes == arguments.end()) demand_dashes(ours);
  Parser parser(ours);
  if (!parser.parse(with_empty_values(ours))) return std::nullopt;
  CommandLine line = parser.result();
  if (dashes != arguments.end()) {
    line.after_dashes.emplace(dashes + 1, arguments.end());
    if (line.command->bit != for_run) throw CommandError(ExitCode::usage, fmt::format("{} takes no command behind --", line.command->name));
  }
  return line;
}

}  // namespace redlock::cli
