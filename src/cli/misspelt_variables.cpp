#include "cli/misspelt_variables.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/option_rows.hpp"
#include "cli/spelling.hpp"
#include "run/command_error.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

constexpr std::string_view prefix = "REDLOCK_";

/// What we hand to commands ourselves (run/nesting.cpp).
constexpr std::array<std::string_view, 6> handed_over{"KEY",   "TOKEN", "FENCE",
                                                      "LEASE", "SLOT",  "HELD"};

/// The name of a setting as its variable has it, without the prefix: `SERVER_TIMEOUT`.
std::string_view variable_part(const OptionRow& option) {
  return std::string_view(option.variable()).substr(prefix.size());
}

bool has_meaning(std::string_view part) {
  const auto is_part = [part](const OptionRow* option) { return variable_part(*option) == part; };
  return std::find(handed_over.begin(), handed_over.end(), part) != handed_over.end() ||
         std::any_of(option::all_options.begin(), option::all_options.end(), is_part);
}

/// Of this command, and set by no more than a file, which is weaker than a variable.
bool is_missing(const OptionRow& option, const Settings& settings) {
  if (option.spec().source == OptionSource::line) return false;
  if ((option.spec().commands & settings.line().command->bit) == 0) return false;
  const auto setting = settings.find(option);
  return !setting || setting->origin == Setting::Origin::file ||
         setting->origin == Setting::Origin::weaker_file;
}

/// No more than every fourth letter differs: PORT, which Kubernetes sets for a service of the name
/// "redlock", is not CERT.
bool is_nearly(std::string_view part, std::string_view meant) {
  const std::size_t most = meant.size() / 4;
  return part.size() <= meant.size() + most && edit_distance(part, meant) <= most;
}

}  // namespace

void refuse_misspelt_variables(const Settings& settings) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view name(*entry);
    name = name.substr(0, name.find('='));
    if (!name.starts_with(prefix)) continue;
    const std::string_view part = name.substr(prefix.size());
    if (has_meaning(part)) continue;
    for (const OptionRow* option : option::all_options) {
      if (!is_nearly(part, variable_part(*option)) || !is_missing(*option, settings)) continue;
      throw CommandError(ExitCode::config,
                         fmt::format("{}: this is no setting; did you mean {}?",
                                     escape_for_terminal(name), option->variable()));
    }
  }
}

}  // namespace redlock::cli
