#include "cli/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "cli/option_rows.hpp"
#include "cli/redact.hpp"
#include "cli/spelling.hpp"
#include "commands/command_error.hpp"
#include "store/registry.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw CommandError(ExitCode::usage, why);
}

bool is_help(const OptionRow& option) {
  return &option == &option::help || &option == &option::help_all;
}

bool wants_help(const CommandLine& line) {
  return line.find(option::help) != nullptr || line.find(option::help_all) != nullptr;
}

/// A word of the command line, as it is shown in a message.
std::string shown(const std::string& word) {
  return escape_for_terminal(shown_word(word));
}

/// For `-s URL`: -s means a shared lock here, as in flock(1), but a server in other tools.
[[noreturn]] void hint_at_server_option(const std::string& url, const std::string& more = {}) {
  refuse(fmt::format("a server is named with a capital -S: -S {}{}", shell_word(shown_word(url)),
                     more));
}

/// A CLI11 parser for the options of some commands. CLI11 takes words from the end of `unread_`
/// while it parses, so the callbacks can tell which word it has just read, and can push it back.
/// Each option is stored in the command line as soon as it is read, and reading continues after an
/// error.
class Reader {
 public:
  enum class Until { end, first_word };

  Reader(std::vector<std::string> words, unsigned commands, Until until, CommandLine& line)
      : words_(std::move(words)), unread_(words_.rbegin(), words_.rend()), line_(line) {
    app_.set_help_flag();  // removes CLI11's own: --help is a row of option_rows.hpp
    app_.allow_extras();
    app_.prefix_command(until == Until::first_word);
    for (const OptionRow* option : option::all_options) {
      const bool is_wanted = (option->spec().commands & commands) != 0 && may_be_named(*option);
      if (is_wanted && !has(*option)) add(*option);
    }
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Returns the words that are neither options nor their values, including unknown options and the
  /// first `--`. Throws the first error once all words have been read, unless help was requested.
  std::vector<std::string> read() {
    std::optional<CommandError> first_error;
    const auto keep = [&](const CommandError& error) {
      if (!first_error) first_error = error;
    };
    for (bool read_all = false; !read_all;) {
      try {
        app_.parse(unread_);
        read_all = true;
      } catch (const CommandError& error) {
        keep(error);
      } catch (const CLI::ValidationError& error) {  // the text of OptionRow::problem()
        keep({ExitCode::usage, shown_message(error.what(), words_)});
      } catch (const CLI::ParseError& error) {
        keep({ExitCode::usage, escape_for_terminal(shown_message(error.what(), words_))});
      }
    }
    if (first_error && !help_requested_) throw CommandError(*first_error);
    return app_.remaining();
  }

  /// Whether --help or --version was given as a word of its own; it then has priority over any
  /// error. A letter within a cluster does not count, because the word may be a typo: `-hotfix`.
  [[nodiscard]] bool help_requested() const noexcept { return help_requested_; }

 private:
  /// Options of different commands may share a spelling (-w of run and of stop).
  [[nodiscard]] bool has(const OptionRow& option) const {
    return std::ranges::any_of(spellings_of(option), [this](std::string_view spelling) {
      return app_.get_option_no_throw(std::string(spelling)) != nullptr;
    });
  }

  /// Whether a word may name the option; only such options are registered. CLI11 compares each
  /// option with all earlier ones, some 20,000 instructions each, which would dominate the start-up
  /// time. The test may err on the side of registering, for example because of a value that looks
  /// like the option: CLI11 alone interprets the words.
  bool may_be_named(const OptionRow& option) const {
    const auto may_name = [](const std::string& word, std::string_view spelling) {
      if (spelling.starts_with("--")) return word.starts_with(spelling);
      return word.starts_with('-') && word.find(spelling[1], 1) != std::string::npos;
    };
    const std::vector<std::string_view> spellings = spellings_of(option);
    return std::any_of(words_.begin(), words_.end(), [&](const std::string& word) {
      return word.starts_with('-') &&
             std::any_of(spellings.begin(), spellings.end(),
                         [&](std::string_view spelling) { return may_name(word, spelling); });
    });
  }

  void add(const OptionRow& option) {
    const auto store = [this, &option](const CLI::results_t& results) {
      // CLI11 does not call the transform for an empty value.
      this->store(option, results.front().empty() ? value_of(option, "") : results.front());
      return true;
    };
    CLI::Option* added = app_.add_option(std::string(option.spec().flags), CLI::callback_t(store));
    added->trigger_on_parse()->allow_extra_args(false)->default_str(no_value);
    if (option.kind() == OptionKind::flag) {
      added->expected(0);
    } else {
      added->expected(0, 1);  // with 1, CLI11 would take a word that looks like an option
    }
    added->transform([this, &option](const std::string& text) { return value_of(option, text); });
    if (option.kind() == OptionKind::flag || option.kind() == OptionKind::list) return;
    added->check(
        [&option](const std::string& text) { return option.problem(text, shown_word(text)); });
  }

  /// The intended value of an option for which CLI11 read `text`. CLI11 does not report whether the
  /// value was a word of its own, so this looks at the words.
  std::string value_of(const OptionRow& option, const std::string& text) {
    std::size_t last = words_.size() - unread_.size() - 1;
    if (words_[last] == "--") {  // CLI11 consumes it as the end of the option's values
      unread_.push_back(words_[last--]);
    }
    const std::string& word = words_[last];
    const auto has_empty_value = [](const std::string& name) {
      return name.starts_with("--") && name.ends_with('=');
    };
    if (option.kind() == OptionKind::flag) {
      // Otherwise --force=false would set --force.
      if (word.starts_with("--") && word.find('=') != std::string::npos) {
        refuse(option.spelling() + " takes no value");
      }
      if (&option == &option::shared && !word.starts_with("--")) {
        const std::string after_s = word.substr(word.find('s') + 1);
        if (stores().begins_url(after_s)) hint_at_server_option(after_s);
      }
      return "true";
    }
    const bool is_optional = option.kind() == OptionKind::optional_value;
    if (is_optional && word == text && !option.has_form(text)) {
      unread_.push_back(text);
      return option.bare_value();
    }
    if (is_optional && word == text) {
      const std::string why = option.problem(text, shown_word(text));
      if (!why.empty())
        refuse(fmt::format("{}: {}; a key like this is named with -k", option.spelling(), why));
      return text;
    }
    if (word == text) {
      // `--name=` followed by a word is usually an unset variable and an unrelated word.
      if (last > 0 && has_empty_value(words_[last - 1])) {
        unread_.push_back(text);
        return {};
      }
      if (looks_like_option(text)) refuse_unclear(option, last);
      return text;
    }
    if (word.ends_with(text)) return text;  // `--name=text`, `-Ntext`
    if (has_empty_value(word)) return {};
    if (is_optional) return option.bare_value();
    if (!unread_.empty()) refuse_unclear(option, last + 1);
    refuse(option.spelling() + " needs a value");
  }

  /// Refuses a value that looks like an option. Usually it is one, and the value was an unset
  /// variable
  /// (`-k $UNSET -n`). So the word is also read as an option, though not as a request for help.
  [[noreturn]] void refuse_unclear(const OptionRow& option, std::size_t word) {
    rejected_ = word;
    const std::string value = shell_word(shown_word(words_[word]));
    refuse(fmt::format(
        "{0} needs a value, and {1} looks like an option; if it is the value, write {0}={1}",
        option.spelling(), value));
  }

  void store(const OptionRow& option, std::string value) {
    if (is_help(option) || &option == &option::version) {
      const std::size_t last = words_.size() - unread_.size() - 1;
      if (rejected_ == last) return;
      const std::vector<std::string_view> own = spellings_of(option);
      if (std::find(own.begin(), own.end(), words_[last]) != own.end()) help_requested_ = true;
    }
    const auto given =
        std::find_if(line_.given.begin(), line_.given.end(),
                     [&](const CommandLine::Given& entry) { return entry.option == &option; });
    if (given == line_.given.end()) {
      line_.given.push_back({&option, {std::move(value)}});
      return;
    }
    const bool may_repeat = option.kind() == OptionKind::flag || option.kind() == OptionKind::list;
    if (!may_repeat) refuse(option.spelling() + " is given twice");
    given->values.push_back(std::move(value));
  }

  /// The text that CLI11 passes for an option without a value.
  static constexpr const char* no_value = "?";

  CLI::App app_;
  const std::vector<std::string> words_;
  std::vector<std::string> unread_;  ///< in reverse order: the next word is the last element
  CommandLine& line_;
  std::optional<std::size_t> rejected_;  ///< the last word that was refused as a value
  bool help_requested_ = false;
};

/// Reads the remaining words after an error, for the options that determine the form in which it is
/// reported (--json, --export, --status-fd).
void read_for_error(const std::vector<std::string>& words, unsigned commands, CommandLine& line) {
  try {
    Reader(words, commands, Reader::Until::end, line).read();
  } catch (const CommandError&) {  // the caller reports the first error
  }
}

/// The names of the commands in a bit set.
std::vector<std::string_view> names_of_commands(unsigned commands) {
  std::vector<std::string_view> names;
  for (const CommandSpec& command : command_table()) {
    if ((commands & command.bit) != 0) names.push_back(command.name);
  }
  return names;
}

/// Names that other tools use for our commands and options.
struct Synonym {
  std::string_view word;
  std::string_view ours;
};
constexpr std::array command_synonyms{
    Synonym{"lock", "run"},       Synonym{"exec", "run"},
    Synonym{"unlock", "release"}, Synonym{"break", "release --force"},
    Synonym{"list", "status"},    Synonym{"ls", "status"},
    Synonym{"who", "status"},     Synonym{"ps", "status"},
    Synonym{"kill", "stop"},      Synonym{"cancel", "stop"},
    Synonym{"renew", "extend"},   Synonym{"check", "doctor"},
};
constexpr std::array option_synonyms{
    Synonym{"--no-wait", "--nonblock"},  Synonym{"--lock-timeout", "--wait"},
    Synonym{"--wait-timeout", "--wait"}, Synonym{"--expire", "--ttl"},
    Synonym{"--name", "--key"},
};

/// Empty if there is none.
std::string_view our_word_for(std::string_view word, std::span<const Synonym> synonyms) {
  const auto found = std::ranges::find(synonyms, word, &Synonym::word);
  return found == synonyms.end() ? std::string_view() : found->ours;
}

[[noreturn]] void refuse_command(const std::string& word) {
  const std::vector<std::string_view> names = names_of_commands(everywhere);
  const std::string_view meant = our_word_for(word, command_synonyms);
  refuse(fmt::format(
      "there is no command {}{}; the commands are {}", shell_word(shown_word(word)),
      meant.empty() ? did_you_mean(word, names) : fmt::format("; did you mean '{}'?", meant),
      fmt::join(names, ", ")));
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
  if (name == "-") refuse("= behind an option that takes no value");
  const std::string others = commands_with(name);
  if (command == nullptr) {
    refuse(others.empty() ? "unknown option " + shown(name)
                          : fmt::format("{} belongs after the command: {}", name, others));
  }
  if (!others.empty()) {
    refuse(fmt::format("{} is not an option of {}, but of {}", name, command->name, others));
  }
  std::vector<std::string_view> names;
  for (const OptionRow* option : option::all_options) {
    if ((option->spec().commands & command->bit) == 0) continue;
    for (const std::string_view spelling : spellings_of(*option)) {
      if (spelling.starts_with("--")) names.push_back(spelling);
    }
  }
  const std::string_view meant = our_word_for(name, option_synonyms);
  const bool is_ours = std::ranges::find(names, meant) != names.end();
  const std::string hint =
      is_ours ? fmt::format("; did you mean '{}'?", meant) : did_you_mean(name, names);
  refuse(fmt::format("unknown option {}{} `redlock-cli {} --help`", shown(name),
                     hint.empty() ? "; see" : hint + " See", command->name));
}

/// Refuses a server URL in place of an operand.
void refuse_server(const CommandLine& line, const std::string& word) {
  const bool is_url = word.find("://") != std::string::npos;
  if (!is_url && (line.find(option::shared) == nullptr || !stores().begins_url(word))) return;
  const bool takes_keys = line.command->operands == Operands::keys;
  hint_at_server_option(word, takes_keys ? "; a key like this is named with -k" : "");
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
      if (word->starts_with("-s")) {
        const bool is_alone = *word == "-s" && word + 1 != rest.end();
        const std::string after_s = is_alone ? word[1] : word->substr(2);
        if (stores().begins_url(after_s)) hint_at_server_option(after_s);
      }
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
    case Operands::none:
      break;
  }
  if (line.has_dashes) refuse(fmt::format("{} takes no command behind --", line.command->name));
  if (words.empty()) return;
  refuse(fmt::format("unexpected argument {}: {} takes options alone",
                     shell_word(shown_word(words.front())), line.command->name));
}

}  // namespace

const std::vector<std::string>* CommandLine::find(const OptionRow& option) const {
  for (const Given& entry : given) {
    if (entry.option == &option) return &entry.values;
  }
  return nullptr;
}

void read_command_line(const std::vector<std::string>& arguments, CommandLine& line) {
  Reader before_name(arguments, without_command, Reader::Until::first_word, line);
  std::vector<std::string> rest = before_name.read();
  const bool is_requested = wants_help(line) || line.find(option::version) != nullptr;
  const bool is_known = rest.empty() || !looks_like_option(rest.front());
  if (before_name.help_requested() || (is_requested && is_known)) return;
  if (rest.empty() || rest.front() == "--")
    refuse(fmt::format("name a command: {}", fmt::join(names_of_commands(everywhere), ", ")));

  line.name = rest.front();
  line.command = find_command(line.name);
  if (line.command == nullptr) {
    read_for_error(rest, asks_servers, line);
    if (looks_like_option(line.name)) refuse_option(line.name, nullptr);
    refuse_command(line.name);
  }

  rest.erase(rest.begin());
  const auto until =
      ends_options(line.command->operands) ? Reader::Until::first_word : Reader::Until::end;
  Reader after_name(std::move(rest), line.command->bit, until, line);
  rest = after_name.read();
  if (after_name.help_requested()) return;
  const bool is_version = line.command->bit == for_version;
  std::vector<std::string> words = words_among(rest, line);
  if (wants_help(line)) return;
  take_words(std::move(words), line);
  if (is_version) line.given.push_back({&option::version, {"true"}});
}

}  // namespace redlock::cli
