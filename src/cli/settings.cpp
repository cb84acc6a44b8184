#include "cli/settings.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "cli/config_paths.hpp"
#include "cli/option_rows.hpp"
#include "cli/redact.hpp"
#include "cli/spelling.hpp"
#include "commands/command_error.hpp"
#include "commands/nesting.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

constexpr std::string_view prefix = "REDLOCK_";

/// The name of an option's variable without the prefix: `SERVER_TIMEOUT`.
std::string_view variable_part(const OptionRow& option) {
  return std::string_view(option.variable()).substr(prefix.size());
}

bool has_meaning(std::string_view name) {
  const auto reads_it = [name](const OptionRow* option) { return option->variable() == name; };
  return std::any_of(option::all_options.begin(), option::all_options.end(), reads_it) ||
         commands::sets_variable(name);
}

/// Whether this command has the option, and a variable for it would take effect: it is not set, or
/// only by a file.
bool is_missing(const OptionRow& option, const Settings& settings) {
  if (option.spec().source == OptionSource::line) return false;
  if ((option.spec().commands & settings.line().command->bit) == 0) return false;
  const auto setting = settings.find(option);
  return !setting || setting->origin == Setting::Origin::file ||
         setting->origin == Setting::Origin::weaker_file;
}

/// Whether at most every fourth letter differs. Kubernetes sets REDLOCK_PORT for a service named
/// "redlock", and PORT must not count as CERT.
bool is_nearly(std::string_view part, std::string_view meant) {
  const std::size_t most = meant.size() / 4;
  return part.size() <= meant.size() + most && edit_distance(part, meant) <= most;
}

}  // namespace

std::string Setting::shown() const {
  const bool from_file = origin == Origin::file || origin == Origin::weaker_file;
  return from_file || values.empty() ? "..." : shown_word(values.front());
}

Rival rival_of(const Setting& setting, std::string usual_name, std::string_view overriding) {
  if (setting.origin == Setting::Origin::line)
    return {std::move(usual_name), "leave one of them out"};
  return {setting.where, fmt::format("override it with {}", overriding)};
}

Settings::Settings(const CommandLine& line) : line_(line) {
  const auto chosen = get(option::config);
  std::optional<std::string> withheld;
  const ConfigPaths paths = config_paths(chosen);
  for (const std::string& path : paths.strongest_first) {
    // The administrator may deny some users access to the system's file. A user who names servers
    // does not need it.
    if (!chosen && find(option::server) && is_withheld(path)) {
      withheld = path;
      continue;
    }
    const Found found = chosen                  ? Found::by_name
                        : path == system_config ? Found::in_system
                                                : Found::in_home;
    if (auto file = read_config_file(path, found)) {
      files_.push_back(std::move(*file));
    } else if (chosen) {
      const std::string why = path.empty() ? "the path is empty; use /dev/null for no settings"
                                           : "there is no file " + escape_for_terminal(path);
      throw CommandError(ExitCode::config, find(option::config)->where + ": " + why);
    }
  }
  if (paths.skipped) {
    make_console(*this).detail(
        fmt::format("{}: skipped: it lies in a directory of another user's that we may not search",
                    escape_for_terminal(*paths.skipped)));
  }

  // Check the flags now: some are read too late to report an error.
  for (const OptionRow* option : option::all_options) {
    if (option->kind() != OptionKind::flag) continue;
    if ((option->spec().commands & line_.command->bit) == 0) continue;
    const auto setting = find(*option);
    if (!setting || setting->origin == Setting::Origin::line) continue;
    const std::string why = option->problem(single_text(*option, *setting), setting->shown());
    if (!why.empty()) refuse(*setting, why);
  }
  if (withheld) {
    make_console(*this).notice(
        fmt::format("{}: permission denied; its settings are not used", *withheld));
  }
}

std::optional<Setting> Settings::find(const OptionRow& option) const {
  using Origin = Setting::Origin;
  if (const auto* given = line_.find_given(option)) {
    return Setting{Origin::line, shown_name(option, given->typed), given->values, given->typed};
  }
  const OptionSource source = option.spec().source;
  if (source == OptionSource::line) return std::nullopt;
  if (const char* value = std::getenv(option.variable()); value != nullptr) {
    return Setting{Origin::variable, option.variable(), {value}};
  }
  if (source == OptionSource::variable) return std::nullopt;
  for (const ConfigFile& file : files_) {
    if (const auto entry = file.values.find(&option); entry != file.values.end()) {
      const auto origin = &file == &files_.front() ? Origin::file : Origin::weaker_file;
      return Setting{origin, fmt::format("{}: {}", escape_for_terminal(file.path), option.name()),
                     entry->second};
    }
  }
  return std::nullopt;
}

unsigned Settings::get(const Counter& option) const {
  const auto setting = find(option);
  if (setting && setting->origin == Setting::Origin::line) {
    return static_cast<unsigned>(setting->values.size());
  }
  return value(option).value_or(option.fallback());
}

void Settings::refuse(const Setting& setting, const std::string& why) {
  throw CommandError(setting.origin == Setting::Origin::line ? ExitCode::usage : ExitCode::config,
                     setting.where + ": " + shown_message(why, setting.values));
}

bool Settings::is_on_line(const OptionRow& option) const {
  const auto setting = find(option);
  return setting && setting->origin == Setting::Origin::line;
}

ExitCode Settings::code_of(std::initializer_list<const OptionRow*> options) const {
  const bool typed =
      std::ranges::any_of(options, [this](const OptionRow* option) { return is_on_line(*option); });
  return typed ? ExitCode::usage : ExitCode::config;
}

void Settings::refuse_both(const Setting& one, const Setting& other, std::string_view more) {
  // Two letters, as they were typed, are enough to find them on the line.
  const auto name_of = [](const Setting& setting) {
    const bool is_letter = setting.typed.size() == 2;
    return is_letter ? std::string(setting.typed) : setting.where;
  };
  const bool typed = one.origin == Setting::Origin::line || other.origin == Setting::Origin::line;
  throw CommandError(
      typed ? ExitCode::usage : ExitCode::config,
      fmt::format("{} and {} cannot be combined{}", name_of(one), name_of(other), more));
}

/// A flag may be given more than once.
const std::string& Settings::single_text(const OptionRow& option, const Setting& setting) const {
  const bool is_repeated_flag =
      option.kind() == OptionKind::flag && setting.origin == Setting::Origin::line;
  if (setting.values.size() != 1 && !is_repeated_flag) refuse(setting, "takes one value");
  return setting.values.front();
}

output::Console make_console(const Settings& settings) {
  const bool locks = (settings.line().command->bit & option::syslog.spec().commands) != 0;
  return {settings.get(option::quiet), settings.get(option::verbose),
          locks && settings.get(option::syslog)};
}

void refuse_misspelt_variables(const Settings& settings) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view name(*entry);
    name = name.substr(0, name.find('='));
    if (!name.starts_with(prefix)) continue;
    if (has_meaning(name)) continue;
    const std::string_view part = name.substr(prefix.size());
    for (const OptionRow* option : option::all_options) {
      if (!is_nearly(part, variable_part(*option)) || !is_missing(*option, settings)) continue;
      throw CommandError(ExitCode::config,
                         fmt::format("{}: unknown setting; did you mean {}?",
                                     escape_for_terminal(name), option->variable()));
    }
  }
}

}  // namespace redlock::cli
