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
#include "run/command_error.hpp"
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

/// A word of the user's as a message shows it.
std::string shown(const std::string& word) {
  return escape_for_terminal(shown_word(word));
}

/// `-s` means a shared lock to flock(1) users, and a server to others.
[[noreturn]] void hint_at_server_option(const std::string& url, const std::string& more = {}) {
  refuse(fmt::format("a server is named with a capital -S: -S {}{}", shell_word(shown_word(url)),
                     more));
}

/// CLI11 with the options of some commands. It takes words from the end of `unread_` while it
/// parses, so the word that it has just read is known, and can be pushed onto it again. Each option
/// is stored in the command line as soon as it is read, and reading continues after an error.
class Reader {
 public:
  enum class Until { end, first_word };

  Reader(std::vector<std::string> words, unsigned commands, Until until, CommandLine& line)
      : words_(std::move(words)), unread_(words_.rbegin(), words_.rend()), line_(line) {
    app_.set_help_flag();  // ours is a row like the others
    app_.allow_extras();
    app_.prefix_command(until == Until::first_word);
    for (const OptionRow* option : option::all_options) {
      const bool is_wanted = (option->spec().commands & commands) != 0 && may_be_named(*option);
      if (is_wanted && !knows(*option)) add(*option);
    }
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Returns the words that are neither options nor their values, with unknown options and the
  /// first `--`. Throws the first error when all words have been read, unless help was requested.
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
      } catch (const CLI::ValidationError& error) {  // our own text, so it is safe to show
        keep({ExitCode::usage, shown_message(error.what(), words_)});
      } catch (const CLI::ParseError& error) {
        keep({ExitCode::usage, escape_for_terminal(shown_message(error.what(), words_))});
      }
    }
    if (first_error && !asks_to_be_told_) throw CommandError(*first_error);
    return app_.remaining();
  }

  /// Whether --help or --version stands in a word of its own, which counts whatever else is wrong.
  /// As letters of a cluster they may be part of a word that was meant differently: `-hotfix`.
  [[nodiscard]] bool asks_to_be_told() const noexcept { return asks_to_be_told_; }

 private:
  /// Options of several commands may have one name (-w of run and of stop).
  [[nodiscard]] bool knows(const OptionRow& option) const {
    return std::ranges::any_of(spellings_of(option), [this](std::string_view spelling) {
      return app_.get_option_no_throw(std::string(spelling)) != nullptr;
    });
  }

  /// CLI11 compares each option with all earlier ones, which would take longer than the rest of the
  /// start: some 20,000 instructions for each. So only the options that a word may name are
  /// registered. The look is generous: a value may name one that then is not given. What the words
  /// mean is decided by CLI11 alone.
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
      // CLI11 skips its transformers for an empty value.
      this->store(option, results.front().empty() ? value_of(option, "") : results.front());
      return true;
    };
    CLI::Option* added = app_.add_option(std::string(option.spec().flags), CLI::callback_t(store));
    added->trigger_on_parse()->allow_extra_args(false)->default_str(no_value);
    if (option.kind() == OptionKind::flag) {
      added->expected(0);
    } else {
      added->expected(0, 1);  // so that it leaves alone a word that resembles an option
    }
    added->transform([this, &option](const std::string& text) { return value_of(option, text); });
    if (option.kind() == OptionKind::flag || option.kind() == OptionKind::list) return;
    added->check(
        [&option](const std::string& text) { return option.problem(text, shown_word(text)); });
  }

  /// The value that was meant, where CLI11 read `text`. Only the words show whether the value stood
  /// in a word of its own; CLI11 does not tell.
  std::string value_of(const OptionRow& option, const std::string& text) {
    std::size_t last = words_.size() - unread_.size() - 1;
    if (words_[last] == "--") {  // CLI11 takes it for the end of the option's values
      unread_.push_back(words_[last--]);
    }
    const std::string& word = words_[last];
    const auto has_empty_value = [](const std::string& name) {
      return name.starts_with("--") && name.ends_with('=');
    };
    if (option.kind() == OptionKind::flag) {
      // --force=false must never mean the opposite.
      if (word.starts_with("--") && word.find('=') != std::string::npos) {
        refuse(option.spelling() + " takes no value");
      }
      if (&option == &option::shared && !word.starts_with("--")) {
        const std::string behind = word.substr(word.find('s') + 1);
        if (stores().begins_url(behind)) hint_at_server_option(behind);
      }
      return "true";
    }
    const bool is_optional = option.kind() == OptionKind::optional_value;
    if (is_optional && word == text && !option.problem(text, text).empty()) {
      unread_.push_back(text);
      return option.bare_value();
    }
    if (word == text) {
      // `--name=` followed by a word: most often an unset variable, and a separate word.
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

  /// A word that follows an option is most often an option of its own, and the value an unset
  /// variable (`-k $UNSET -n`). So the word is read as an option, too, but not as a request for
  /// help.
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
      if (std::find(own.begin(), own.end(), words_[last]) != own.end()) asks_to_be_told_ = true;
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

  /// What CLI11 reads for an option without a value.
  static constexpr const char* no_value = "?";

  CLI::App app_;
  const std::vector<std::string> words_;
  std::vector<std::string> unread_;  ///< the next one is the last
  CommandLine& line_;
  std::optional<std::size_t> rejected_;  ///< the last word that may have been meant as a value
  bool asks_to_be_told_ = false;
};

/// Finds out in which form to report an error (--json, --export, --status-fd), from words that can
/// mean nothing else any more.
void read_for_error(const std::vector<std::string>& words, unsigned commands, CommandLine& line) {
  try {
    Reader(words, commands, Reader::Until::end, line).read();
  } catch (const CommandError&) {  // there is a worse one
  }
}

/// Of these, given as bits.
std::vector<std::string_view> names_of_commands(unsigned commands) {
  std::vector<std::string_view> names;
  for (const CommandSpec& command : command_table()) {
    if ((commands & command.bit) != 0) names.push_back(command.name);
  }
  return names;
}

/// What other lock tools, and habit, call a command or an option of ours.
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

/// Empty: none.
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

/// `command`: null before the command's name was read.
[[noreturn]] void refuse_option(const std::string& word, const CommandSpec* command) {
  const std::string name = word.substr(0, word.find('='));
  // What is left of -n=5.
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

/// Refuses a server where a plain word belongs.
void refuse_server(const CommandLine& line, const std::string& word) {
  const bool is_url = word.find("://") != std::string::npos;
  if (!is_url && (line.find(option::shared) == nullptr || !stores().begins_url(word))) return;
  const bool takes_keys = line.command->operands == Operands::keys;
  hint_at_server_option(word, takes_keys ? "; a key like this is named with -k" : "");
}

/// Splits the words that CLI11 left over into unknown options, which end the command, and plain
/// words.
std::vector<std::string> words_among(const std::vector<std::string>& rest, CommandLine& line) {
  std::vector<std::string> words;
  for (auto word = rest.begin(); word != rest.end(); ++word) {
    if (*word == "--") {
      line.has_dashes = true;
      words.insert(words.end(), word + 1, rest.end());
      break;
    }
    if (looks_like_option(*word)) {
      // It is unknown whether the next word is the value of this option, or begins a command.
      read_for_error({word + 1, rest.end()}, line.command->bit, line);
      if (word->starts_with("-s")) {
        const bool is_alone = *word == "-s" && word + 1 != rest.end();
        const std::string behind = is_alone ? word[1] : word->substr(2);
        if (stores().begins_url(behind)) hint_at_server_option(behind);
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

/// `help COMMAND` is `COMMAND --help`.
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
  const bool is_told = wants_help(line) || line.find(option::version) != nullptr;
  const bool is_known = rest.empty() || !looks_like_option(rest.front());
  if (before_name.asks_to_be_told() || (is_told && is_known)) return;
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
  Reader behind_name(std::move(rest), line.command->bit, until, line);
  rest = behind_name.read();
  if (behind_name.asks_to_be_told()) return;
  const bool is_version = line.command->bit == for_version;
  std::vector<std::string> words = words_among(rest, line);
  if (wants_help(line)) return;
  take_words(std::move(words), line);
  if (is_version) line.given.push_back({&option::version, {"true"}});
}

}  // namespace redlock::cli
