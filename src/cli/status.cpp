#include "commands/status.hpp"

#include <algorithm>
#include <initializer_list>

#include "cli/command_session.hpp"
#include "cli/commands.hpp"
#include "cli/option_rows.hpp"
#include "cli/read_lock_options.hpp"
#include "commands/command_error.hpp"

namespace redlock::cli {
namespace {

using Options = std::initializer_list<const OptionRow*>;

void refuse_beside(const Settings& settings, const OptionRow& one, Options others) {
  for (const OptionRow* other : others) {
    if (const auto rival = settings.find(*other))
      Settings::refuse_both(*settings.find(one), *rival);
  }
}

/// Refuses options that contradict each other: each asks for a different kind of answer.
void check_combinations(const Settings& settings, const commands::StatusOptions& options) {
  for (const OptionRow* one : Options{&option::max_age, &option::max_held, &option::runs}) {
    const auto setting = settings.find(*one);
    if (setting && options.resources.empty()) Settings::refuse(*setting, "needs KEY");
  }
  for (const OptionRow* one : Options{&option::max_age, &option::max_held, &option::openmetrics}) {
    if (settings.find(*one))
      refuse_beside(settings, *one, {&option::exit_code, &option::watch, &option::runs});
  }
  if (!options.openmetrics) return;
  refuse_beside(settings, option::openmetrics, {&option::max_age, &option::max_held});
  if (settings.is_on_line(option::json))
    throw CommandError(ExitCode::usage, "--json and --openmetrics cannot be combined");
}

commands::StatusOptions read_status_options(const Settings& settings) {
  commands::StatusOptions options;
  if (const auto keys = settings.find(option::key)) {
    for (Resource& resource : keys_in(*keys)) {
      if (std::ranges::find(options.resources, resource) == options.resources.end())
        options.resources.push_back(std::move(resource));
    }
  }
  const auto prefix = settings.get(option::prefix);
  if (prefix && !options.resources.empty()) {
    throw CommandError(ExitCode::usage, "--prefix cannot be combined with keys");
  }
  options.prefix = prefix.value_or("");
  options.slots = settings.get(option::slots);
  options.exit_code = settings.get(option::exit_code);
  options.watch = settings.get(option::watch);
  options.verbose = settings.get(option::verbose) > 0;
  const bool all = settings.get(option::all);
  options.openmetrics = settings.get(option::openmetrics);
  options.listed = all || options.openmetrics ? Listed::used : Listed::held;
  if (all && !options.resources.empty())
    Settings::refuse(*settings.find(option::all), "cannot be combined with KEY");
  options.limits = {.max_age = settings.get(option::max_age),
                    .max_held = settings.get(option::max_held)};
  options.runs = settings.get(option::runs);
  check_combinations(settings, options);
  return options;
}

}  // namespace

commands::Finish status_command(const Settings& settings, const commands::Start& start) {
  const commands::StatusOptions options = read_status_options(settings);
  const commands::ServerOptions servers = read_server_options(settings);
  commands::Session session(session_options(settings), servers, timeout_without_ttl(servers));
  return commands::status(session, options, start.inherited);
}

}  // namespace redlock::cli
