#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/config_file.hpp"
#include "support/boot_clock.hpp"

namespace redlock::cli {

/// A setting's value and where it came from.
struct Setting {
  enum class Origin { line, variable, file, weaker_file };  // strongest first

  Origin origin;
  std::string where;  ///< for messages: `--ttl`, `REDLOCK_TTL`, `/etc/redlock-cli.toml: ttl`
  std::vector<std::string> values;

  /// Its one value for a message: what a file says is not repeated, since not everybody who may
  /// name the file may read it.
  [[nodiscard]] std::string shown() const;
};

/// All settings of one call: the command line's, else the environment's, else the configuration files'. Every value is text until it is
/// asked for; what cannot be read ends the command with one line that names where it came from: usage (64) on the command line,
/// configuration (78) elsewhere. All functions may throw CommandError.
class Settings {
 public:
  explicit Settings(CommandLine line);

  [[nodiscard]] const CommandLine& line() const noexcept { return line_; }

  /// The setting with its origin; nothing when it is set nowhere.
  [[nodiscard]] std::optional<Setting> find(std::string_view name) const;

  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] unsigned repeated(std::string_view name) const;  ///< how often a flag was given
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
  [[nodiscard]] std::optional<Duration> duration(std::string_view name) const;
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name, std::uint64_t largest) const;

  /// Ends the command because this setting's value is wrong.
  [[noreturn]] static void refuse(const Setting& setting, const std::string& why);

 private:
  CommandLine line_;
  std::vector<ConfigFile> files_;  ///< strongest first
};

}  // namespace redlock::cli
