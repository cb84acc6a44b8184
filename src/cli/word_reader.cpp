#include "cli/word_reader.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "cli/command_line.hpp"
#include "cli/option_rows.hpp"
#include "cli/redact.hpp"
#include "cli/spelling.hpp"
#include "store/registry.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

bool is_information(const OptionRow& option) {
  return &option == &option::help || &option == &option::help_all || &option == &option::version;
}

bool may_repeat(const OptionRow& option) {
  return option.kind() == OptionKind::flag || option.kind() == OptionKind::list;
}

/// Why a flag cannot stand so in this word; empty if it can.
std::string flag_problem(const WordReader::Part& part, const std::string& word) {
  const OptionRow& option = *part.option;
  const bool is_long = word.starts_with("--");
  // Otherwise --force=false would set --force.
  if (is_long && word.find('=') != std::string::npos)
    return shown_name(option, part.typed) + " takes no value";
  if (is_long || &option != &option::shared) return {};
  const std::string after_s = word.substr(word.find('s') + 1);
  return stores().begins_url(after_s) ? server_option_hint(after_s) : std::string();
}

/// The spelling of an option that this word has.
std::string_view spelling_in(const std::string& word, const OptionRow& option) {
  const std::vector<std::string_view> spellings = spellings_of(option);
  const std::string_view name = std::string_view(word).substr(0, word.find('='));
  const auto found = std::ranges::find_if(spellings, [&](std::string_view spelling) {
    if (name.starts_with("--")) return spelling == name;
    return spelling.size() == 2 && word.find(spelling[1], 1) != std::string::npos;
  });
  return found == spellings.end() ? std::string_view() : *found;
}

}  // namespace

/// The options that CLI11 knows.
class WordReader::Options {
 public:
  explicit Options(unsigned commands) : commands_(commands) {
    app_.set_help_flag();  // removes CLI11's own: --help is a row of option_rows.hpp
    app_.allow_extras();
  }

  Split split(const std::string& word) {
    for (const OptionRow* option : option::all_options) {
      const bool is_wanted = (option->spec().commands & commands_) != 0 && may_name(word, *option);
      if (is_wanted && !has_spelling_of(*option)) add(*option);
    }
    split_ = {};
    word_ = word;
    app_.parse(std::vector{word});
    split_.unknown = app_.remaining();
    return std::move(split_);
  }

 private:
  /// Whether the word may name the option; only such options are registered. CLI11 compares each
  /// option with all earlier ones, some 20,000 instructions each, which would dominate the start-up
  /// time. The test may err on the side of registering: CLI11 alone interprets the word.
  static bool may_name(const std::string& word, const OptionRow& option) {
    const std::vector<std::string_view> spellings = spellings_of(option);
    return std::ranges::any_of(spellings, [&](std::string_view spelling) {
      if (spelling.starts_with("--")) return word.starts_with(spelling);
      return word.find(spelling[1], 1) != std::string::npos;
    });
  }

  /// Options of different commands may share a spelling (-w of run and of stop).
  [[nodiscard]] bool has_spelling_of(const OptionRow& option) const {
    return std::ranges::any_of(spellings_of(option), [this](std::string_view spelling) {
      return app_.get_option_no_throw(std::string(spelling)) != nullptr;
    });
  }

  void add(const OptionRow& option) {
    const auto note = [this, &option](const CLI::results_t& results) {
      const bool is_flag = option.kind() == OptionKind::flag;
      std::optional<std::string> value;
      // CLI11 passes "" both for no value and for an empty one.
      if (!is_flag && (!results.front().empty() || word_.ends_with('='))) value = results.front();
      split_.parts.push_back({&option, spelling_in(word_, option), std::move(value)});
      return true;
    };
    app_.add_option(std::string(option.spec().flags), CLI::callback_t(note))
        ->expected(0, option.kind() == OptionKind::flag ? 0 : 1)
        ->trigger_on_parse()
        ->allow_extra_args(false);
  }

  unsigned commands_;
  CLI::App app_;
  std::string word_;
  Split split_;
};

WordReader::WordReader(unsigned commands, Until until, CommandLine& line)
    : options_(std::make_unique<Options>(commands)),
      until_(until),
      line_(line),
      takes_servers_((commands & option::server.spec().commands) != 0) {}

WordReader::~WordReader() = default;

void WordReader::read(const std::string& word) {
  bool is_refused_value = false;
  if (const auto part = std::exchange(last_, std::nullopt)) {
    if (read_value(*part, word)) return;
    // Usually it is an option, and the value was an unset variable (`-k $UNSET -n`). So it is also
    // read as an option, though not as a request for help.
    is_refused_value = part->option->kind() != OptionKind::optional_value;
  }
  if (std::exchange(may_be_host_, false) && !looks_like_option(word)) {
    help_requested_ = false;
    keep(host_option_hint(word));
  }
  if (has_ended_ || !looks_like_option(word)) {
    rest_.push_back(word);
    has_ended_ = has_ended_ || until_ == Until::first_word;
  } else if (word == "--") {
    rest_.push_back(word);
    has_ended_ = true;
  } else {
    read_options(word, is_refused_value);
  }
}

void WordReader::end() {
  const auto part = std::exchange(last_, std::nullopt);
  if (!part) return;
  if (part->option->kind() == OptionKind::optional_value) {
    store(*part, part->option->bare_value());
  } else {
    keep(shown_name(*part->option, part->typed) + " needs a value");
  }
}

WordReader::Split WordReader::split(const std::string& word) {
  return options_->split(word);
}

const OptionRow* WordReader::awaiting() const noexcept {
  const bool needs_value = last_ && last_->option->kind() != OptionKind::optional_value;
  return needs_value ? last_->option : nullptr;
}

void WordReader::read_options(const std::string& word, bool is_refused_value) {
  Split split = options_->split(word);
  for (Part& part : split.parts) {
    const OptionRow& option = *part.option;
    if (option.kind() == OptionKind::flag) {
      // An error ends the word: what follows is no option then, but part of what is wrong.
      if (const std::string why = flag_problem(part, word); !why.empty()) return keep(why);
      if (is_information(option) && is_refused_value) continue;
      if (is_information(option) && word == part.typed) {
        help_requested_ = true;
        may_be_host_ = takes_servers_ && word == "-h";
      }
      store(part, "true");
    } else if (!part.value) {
      last_ = part;
    } else {
      const std::string why = option.problem(*part.value, shown_word(*part.value));
      if (!why.empty()) return keep(fmt::format("{}: {}", shown_name(option, part.typed), why));
      store(part, *part.value);
    }
  }
  rest_.insert(rest_.end(), split.unknown.begin(), split.unknown.end());
}

/// Reads the word after an option without an attached value. Returns whether it is the value, be it
/// a wrong one.
bool WordReader::read_value(const Part& part, const std::string& word) {
  const OptionRow& option = *part.option;
  const bool is_optional = option.kind() == OptionKind::optional_value;
  if (is_optional && !option.has_form(word)) {
    store(part, option.bare_value());
    return false;
  }
  const std::string name = shown_name(option, part.typed);
  if (!is_optional && looks_like_option(word)) {
    keep(fmt::format(
        "{0} needs a value, and {1} looks like an option; if it is the value, write {2}={1}", name,
        shell_word(shown_word(word)), option.spelling()));
    return false;
  }
  // An empty word, usually from an unset variable, is refused when the setting is read.
  const std::string why = word.empty() ? "" : option.problem(word, shown_word(word));
  if (!why.empty()) {
    keep(fmt::format("{}: {}{}", name, why,
                     is_optional ? "; a key like this is named with -k" : ""));
  } else {
    store(part, word);
  }
  return true;
}

void WordReader::store(const Part& part, std::string value) {
  const OptionRow& option = *part.option;
  const auto given = std::ranges::find(line_.given, &option, &CommandLine::Given::option);
  if (given == line_.given.end()) {
    line_.given.push_back({&option, {std::move(value)}, part.typed});
  } else if (may_repeat(option)) {
    given->values.push_back(std::move(value));
  } else {
    keep(shown_name(option, part.typed) + " is given twice");
  }
}

void WordReader::keep(std::string error) {
  if (!error_) error_.emplace(ExitCode::usage, error);
}

}  // namespace redlock::cli
