#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_types.hpp"
#include "commands/command_error.hpp"

namespace redlock::cli {

struct CommandLine;

/// Reads the words behind a command's name (or before it), one after the other, into a CommandLine,
/// and knows what the next word would be. The command line and its completion both ask it.
///
/// CLI11 splits a word: it knows the spellings, the clusters and what is attached (`-nk5`,
/// `--ttl=5`). Which word is the value of the word before it is decided here, because a value that
/// looks like an option is refused, and an optional one is taken only if it has the form of one.
class WordReader {
 public:
  enum class Until { end, first_word };

  /// An option in a word.
  struct Part {
    const OptionRow* option;
    std::string_view typed;            ///< its spelling in the word
    std::optional<std::string> value;  ///< the attached value; nullopt: none is attached
  };
  struct Split {
    std::vector<Part> parts;
    std::vector<std::string> unknown;  ///< what no option matches; a cluster without what matched
  };

  /// Knows the options of `commands`. Options end at `--`; with Until::first_word also at the first
  /// word that is neither an option nor the value of one. `line` must outlive this object.
  WordReader(unsigned commands, Until until, CommandLine& line);
  WordReader(const WordReader&) = delete;
  WordReader& operator=(const WordReader&) = delete;
  ~WordReader();

  /// Reads the next word. After an error, reading continues.
  void read(const std::string& word);

  /// To be called when there are no more words: an option may still lack its value.
  void end();

  /// Splits a word that looks like an option.
  Split split(const std::string& word);

  /// The option whose value the next word is; null if it is not one, or only if it has its form.
  [[nodiscard]] const OptionRow* awaiting() const noexcept;

  /// Whether the options have ended.
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }

  /// The words that are neither options nor their values, including unknown options and the first
  /// `--`.
  [[nodiscard]] const std::vector<std::string>& rest() const noexcept { return rest_; }

  /// The first error (usage).
  [[nodiscard]] const std::optional<CommandError>& error() const noexcept { return error_; }

  /// Whether --help or --version was given as a word of its own; it then has priority over any
  /// error. A letter within a cluster does not count, because the word may be a typo: `-hotfix`.
  /// Nor does redis-cli's `-h HOST` where servers are named: a script would take help for success.
  [[nodiscard]] bool help_requested() const noexcept { return help_requested_; }

 private:
  class Options;

  void read_options(const std::string& word, bool is_refused_value);
  bool read_value(const Part& part, const std::string& word);
  void store(const Part& part, std::string value);
  void keep(std::string error);

  std::unique_ptr<Options> options_;
  Until until_;
  CommandLine& line_;
  std::vector<std::string> rest_;
  std::optional<Part> last_;  ///< the option of the last word, if it has no value yet
  bool takes_servers_;
  bool may_be_host_ = false;  ///< the last word was -h
  bool has_ended_ = false;
  bool help_requested_ = false;
  std::optional<CommandError> error_;
};

}  // namespace redlock::cli
