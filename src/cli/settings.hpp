#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/config_file.hpp"
#include "cli/option_types.hpp"
#include "core/exit_code.hpp"
#include "output/console.hpp"

namespace redlock::cli {

/// The value of a setting and its origin.
struct Setting {
  /// Strongest first: the origin that is more specific to this command wins. `file` is the stronger
  /// of two files (config_paths.hpp).
  enum class Origin { line, variable, file, weaker_file };

  Origin origin;
  std::string where;  ///< the origin in messages: `--ttl`, `REDLOCK_TTL`, `/etc/….toml: ttl`
  std::vector<std::string> values;
  std::string_view typed{};  ///< the spelling on the command line; empty if it is not there

  /// The first value, for a message. A value from a file is shown as `...`, because a user who may
  /// name the file need not be allowed to read it.
  [[nodiscard]] std::string shown() const;
};

/// A setting that an option of the command line contradicts, as a message names it.
struct Rival {
  std::string name;
  std::string remedy;  ///< a clause
};

/// `usual_name` stands for a setting of the command line. `overriding` is the option that overrides
/// one of a variable or file.
Rival rival_of(const Setting& setting, std::string usual_name, std::string_view overriding);

/// All settings of this invocation: from the command line, else the environment, else the
/// configuration files. A value is text until it is read through its row of option_rows.hpp. An
/// invalid value ends the command with one line that names its origin: usage (64) on the command
/// line, configuration (78) elsewhere. All functions may throw CommandError.
class Settings {
 public:
  /// `line` names a command, and must outlive the settings.
  explicit Settings(const CommandLine& line);

  [[nodiscard]] const CommandLine& line() const noexcept { return line_; }

  /// The setting with its origin; nullopt if it is not set.
  [[nodiscard]] std::optional<Setting> find(const OptionRow& option) const;

  /// The value of an option; nullopt if it is not set.
  template <class Type>
  [[nodiscard]] std::optional<typename Type::Value> get(const Option<Type>& option) const {
    return value(option);
  }

  /// The value of an option, or its default.
  template <class Type>
  [[nodiscard]] typename Type::Value get(const DefaultOption<Type>& option) const {
    return value(option).value_or(option.fallback());
  }

  /// The number of times the flag was given.
  [[nodiscard]] unsigned get(const Counter& option) const;

  /// Ends the command because the value of this setting is invalid.
  [[noreturn]] static void refuse(const Setting& setting, const std::string& why);

  [[nodiscard]] bool is_on_line(const OptionRow& option) const;

  /// The exit code of an error that these options cause together: usage if any of them is on the
  /// command line, else config.
  [[nodiscard]] ExitCode code_of(std::initializer_list<const OptionRow*> options) const;

  /// Ends the command because two settings cannot be combined. `more` ends the message.
  [[noreturn]] static void refuse_both(const Setting& one, const Setting& other,
                                       std::string_view more = {});

 private:
  [[nodiscard]] const std::string& single_text(const OptionRow& option,
                                               const Setting& setting) const;

  template <class Type>
  [[nodiscard]] std::optional<typename Type::Value> value(const TypedOption<Type>& option) const {
    const auto setting = find(option);
    if (!setting) return std::nullopt;
    auto read = option.type().read(single_text(option, *setting), setting->shown());
    if (!read) refuse(*setting, read.error());
    return std::move(*read);
  }

  const CommandLine& line_;
  std::vector<ConfigFile> files_;  ///< strongest first
};

/// A console with the verbosity and the log of these settings.
output::Console make_console(const Settings& settings);

/// Refuses (config) a variable that was probably meant as a setting, such as REDLOCK_SERVERS, and
/// would otherwise be ignored silently. A variable REDLOCK_... may also belong to another program,
/// so it is refused only if it resembles a setting of this command that neither its own variable
/// nor the command line sets.
void refuse_misspelt_variables(const Settings& settings);

}  // namespace redlock::cli
