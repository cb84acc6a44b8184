#include "cli/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "cli/command_error.hpp"
#include "cli/config_paths.hpp"
#include "cli/console.hpp"
#include "cli/redact.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

std::optional<bool> parse_flag(std::string_view text) {
  for (const std::string_view yes : {"1", "true", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "no", "off"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

}  // namespace

std::string Setting::shown() const {
  const bool from_file = origin == Origin::file || origin == Origin::weaker_file;
  return from_file ? "..." : shown_word(values.front());
}

Settings::Settings(CommandLine line) : line_(std::move(line)) {
  const auto chosen = text("config");
  std::optional<std::string> withheld;
  const ConfigPaths paths = config_paths(chosen);
  for (const std::string& path : paths.strongest_first) {
    // The administrator's settings need not be everybody's: who names servers of his own can do without them.
    if (!chosen && find("server") && is_withheld(path)) {
      withheld = path;
      continue;
    }
    if (auto file = read_config_file(path)) {
      files_.push_back(std::move(*file));
    } else if (chosen) {
      throw CommandError(ExitCode::config, fmt::format("{}: there is no file {}", find("config")->where, escape_for_terminal(path)));
    }
  }
  if (paths.skipped) {
    make_console(*this).detail(
        fmt::format("{}: skipped: it lies in a directory of another user's that we may not search",
                    escape_for_terminal(*paths.skipped)));
  }
  // Flags are read in many places, some of them too late to complain.
  for (const OptionSpec& option : option_table()) {
    if (option.kind == OptionKind::flag && (option.commands & line_.command->bit) != 0) (void)repeated(option.name);
  }
  if (withheld) make_console(*this).notice(fmt::format("{}: permission denied; its settings are not used", *withheld));
}

std::optional<Setting> Settings::find(std::string_view name) const {
  const OptionSpec& option = *find_option(name);
  if (const auto given = line_.values.find(name); given != line_.values.end()) {
    return Setting{Setting::Origin::line, "--" + std::string(name), given->second};
  }
  if (option.source == OptionSource::line) return std::nullopt;
  const std::string variable = variable_of(option);
  if (const char* value = std::getenv(variable.c_str()); value != nullptr) return Setting{Setting::Origin::variable, variable, {value}};
  if (option.source == OptionSource::variable) return std::nullopt;
  for (const ConfigFile& file : files_) {
    if (const auto entry = file.values.find(name); entry != file.values.end()) {
      const auto origin = &file == &files_.front() ? Setting::Origin::file : Setting::Origin::weaker_file;
      return Setting{origin, escape_for_terminal(file.path) + ": " + std::string(name), entry->second};
    }
  }
  return std::nullopt;
}

bool Settings::flag(std::string_view name) const {
  return repeated(name) > 0;
}

unsigned Settings::repeated(std::string_view name) const {
  const auto setting = find(name);
  if (!setting) return 0;
  if (setting->origin == Setting::Origin::line) return static_cast<unsigned>(setting->values.size());
  const std::string value = setting->values.size() == 1 ? setting->values.front() : std::string();
  if (const auto yes = parse_flag(value)) return *yes ? 1 : 0;
  if (name == "verbose") {  // the one flag that counts
    unsigned level = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), level);
    if (error == std::errc() && end == value.data() + value.size() && level <= 9) return level;
  }
  refuse(*setting, "must be true or false");
}

std::optional<std::string> Settings::text(std::string_view name) const {
  const auto setting = find(name);
  if (!setting) return std::nullopt;
  if (setting->values.size() != 1) refuse(*setting, "takes one value");
  return setting->values.front();
}

std::optional<Duration> Settings::duration(std::string_view name) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  const auto span = parse_duration(*value);
  if (!span) refuse(*find(name), describe(span.error(), find(name)->shown()));
  return *span;
}

std::optional<std::uint64_t> Settings::number(std::string_view name, std::uint64_t largest) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size() || number > largest) {
    refuse(*find(name), fmt::format("must be a whole number from 0 to {}", largest));
  }
  return number;
}

void Settings::refuse(const Setting& setting, const std::string& why) {
  throw CommandError(setting.origin == Setting::Origin::line ? ExitCode::usage : ExitCode::config,
                     setting.where + ": " + shown_message(why, setting.values));
}

}  // namespace redlock::cli
