#include "cli/commands.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/lease_source.hpp"
#include "cli/option_rows.hpp"
#include "cli/read_lock_options.hpp"
#include "cli/redact.hpp"
#include "commands/command_error.hpp"
#include "commands/doctor.hpp"
#include "commands/extend.hpp"
#include "commands/lift.hpp"
#include "commands/release.hpp"
#include "commands/status.hpp"
#include "commands/stop.hpp"
#include "commands/this_user.hpp"
#include "core/validity.hpp"
#include "output/doctor.hpp"

namespace redlock::cli {
namespace {

using Options = std::initializer_list<const OptionRow*>;

void refuse_beside(const Settings& settings, const OptionRow& one, Options others) {
  for (const OptionRow* other : others) {
    if (const auto rival = settings.find(*other))
      Settings::refuse_both(*settings.find(one), *rival);
  }
}

commands::StopOptions read_stop_options(const Settings& settings) {
  std::vector<Resource> resources = read_keys(settings);
  if (resources.size() > 1) throw CommandError(ExitCode::usage, "stop is for one key at a time");
  commands::StopOptions options{.resource = std::move(resources.front()),
                                .wait = settings.get(option::stop_wait)};
  options.slot = settings.get(option::slot);
  if (const auto fence = settings.get(option::if_fence)) options.only_if = Fence(*fence);
  const bool waiting = settings.get(option::stop_waiting);
  const bool all = settings.get(option::stop_all);
  if (all) refuse_beside(settings, option::stop_all, {&option::stop_waiting});
  if (waiting) {
    refuse_beside(settings, option::stop_waiting,
                  {&option::slot, &option::if_fence, &option::stop_wait});
  }
  if (waiting || all)
    options.target = all ? commands::StopTarget::all : commands::StopTarget::waiters;
  const Owner user = commands::this_user();
  options.request = {
      .host = user.host, .user = user.user, .reason = settings.get(option::reason).value_or("")};
  return options;
}

/// A result is what these commands are for, and no option would bring it back, so a file or a
/// variable silences messages alone.
bool prints_result(const Settings& settings) {
  return !settings.is_on_line(option::quiet);
}

/// Refuses options that contradict each other: each asks for a different kind of answer.
void check_combinations(const Settings& settings, const commands::StatusOptions& options) {
  const bool has_key = !options.resources.empty();
  for (const OptionRow* one : Options{&option::max_age, &option::max_held}) {
    if (const auto setting = settings.find(*one); setting && !has_key)
      Settings::refuse(*setting, "needs KEY");
  }
  if (const auto setting = settings.find(option::runs); setting && !has_key) {
    Settings::refuse(*setting,
                     "needs KEY; `redlock-cli status --all` shows the last run of each "
                     "free lock");
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
  if (auto pool = settings.get(option::slots)) {
    options.slots = pool->size;
    options.slot_names = std::move(pool->names);
  }
  options.exit_code = settings.get(option::exit_code);
  options.watch = settings.get(option::watch);
  options.verbose = settings.get(option::verbose) > 0;
  const bool all = settings.get(option::all);
  options.openmetrics = settings.get(option::openmetrics);
  options.prints = prints_result(settings);
  options.listed = all || options.openmetrics ? Listed::used : Listed::held;
  if (all && !options.resources.empty())
    Settings::refuse(*settings.find(option::all), "cannot be combined with KEY");
  options.limits = {.max_age = settings.get(option::max_age),
                    .max_held = settings.get(option::max_held)};
  options.runs = settings.get(option::runs);
  check_combinations(settings, options);
  return options;
}

std::string shown_value(const OptionRow& option, const Setting& setting) {
  std::string value;
  for (const std::string& part : setting.values) {
    const std::optional<std::string> shown =
        &option == &option::server ? shown_servers(part) : shown_word(part);
    if (!shown) return "not shown: not a valid server URL";
    value += (value.empty() ? "" : ",") + *shown;
  }
  return value;
}

commands::ExitAs show_settings(const Settings& settings) {
  std::vector<output::ShownSetting> shown;
  for (const OptionRow* option : option::all_options) {
    if (option->spec().source == OptionSource::line) continue;
    output::ShownSetting row{std::string(option->name()), std::nullopt, option->default_text()};
    if (const auto setting = settings.find(*option))
      row.value = {shown_value(*option, *setting), setting->where};
    shown.push_back(std::move(row));
  }
  commands::print_result(settings.get(option::json) ? output::settings_json(shown) + "\n"
                                                    : output::settings_text(shown));
  return commands::ExitAs{to_int(ExitCode::done)};
}

}  // namespace

commands::SessionOptions session_options(const Settings& settings) {
  // A command that acquires or extends must check that no server is listed twice, and that none has
  // lost its data since it granted the lease.
  const bool identifies_servers = (settings.line().command->bit & (waits | for_extend)) != 0;
  return {.console = make_console(settings),
          .json = settings.get(option::json),
          .identifies_servers = identifies_servers};
}

commands::ExitAs extend_command(const Settings& settings) {
  commands::ServerOptions servers = read_server_options(settings);
  const Ttl ttl = require_ttl(
      settings,
      TtlDemands{.server_timeout = servers.timeout, .grace = Duration::zero(), .supervised = false},
      ": how long the lease is to last from now on");
  raise_restart_guard(settings, servers, option::ttl, ttl.length());
  const commands::ExtendOptions options{.lease = find_lease(settings, servers), .ttl = ttl};
  commands::Session session(session_options(settings), servers,
                            servers.timeout.value_or(default_server_timeout(ttl)));
  return commands::extend(session, options);
}

commands::ExitAs release_command(const Settings& settings) {
  const commands::ServerOptions servers = read_server_options(settings);
  const auto fence = settings.get(option::if_fence);
  const bool force = settings.get(option::force);
  const auto slot = settings.get(option::slot);
  const bool lifts = !force && names_other_locks(settings, servers, slot);
  if (fence && !force && !lifts)
    throw CommandError(ExitCode::usage, "--if-fence goes with --force, or with the KEY of a hold");
  Owner breaker = commands::this_user();
  if (const auto reason = settings.get(option::reason)) {
    if (!force) Settings::refuse(*settings.find(option::reason), "goes with --force");
    breaker.note = *reason;
  }
  const bool foreign = settings.get(option::foreign);
  if (foreign && !force) Settings::refuse(*settings.find(option::foreign), "goes with --force");
  if (slot && foreign)
    Settings::refuse_both(*settings.find(option::slot), *settings.find(option::foreign));
  if (foreign && fence)
    Settings::refuse_both(*settings.find(option::foreign), *settings.find(option::if_fence));
  std::optional<LeaseHandle> lease;
  if (!force && !lifts) lease = find_lease(settings, servers);
  if (slot && lease && !is_of_slot_alone(*lease, *slot))
    Settings::refuse(*settings.find(option::slot), "goes with the KEY of a hold, or with --force");
  commands::Session session(session_options(settings), servers, timeout_without_ttl(servers));
  if (lease) return commands::release(session, *lease);
  std::vector<Resource> resources = read_keys(settings);
  if (fence && resources.size() > 1)
    throw CommandError(ExitCode::usage, "--if-fence is for one key at a time");
  const std::optional<Fence> only_if = fence ? std::optional(Fence(*fence)) : std::nullopt;
  if (lifts) return commands::lift_holds(session, {std::move(resources), only_if, slot});
  commands::BreakOptions options;
  options.resources = std::move(resources);
  options.only_if = only_if;
  options.breaker = std::move(breaker);
  options.and_foreign = foreign;
  options.slot = slot;
  return commands::break_locks(session, options);
}

commands::ExitAs stop_command(const Settings& settings) {
  const commands::ServerOptions servers = read_server_options(settings);
  const commands::StopOptions options = read_stop_options(settings);
  commands::Session session(session_options(settings), servers, timeout_without_ttl(servers));
  return commands::stop(session, options);
}

commands::ExitAs status_command(const Settings& settings, const commands::Start& start) {
  const commands::StatusOptions options = read_status_options(settings);
  const commands::ServerOptions servers = read_server_options(settings);
  commands::SessionOptions about = session_options(settings);
  about.tells_unknown_roles = true;
  commands::Session session(about, servers, timeout_without_ttl(servers));
  return commands::status(session, options, start.inherited);
}

commands::ExitAs doctor_command(const Settings& settings) {
  if (settings.get(option::settings)) return show_settings(settings);
  std::optional<Resource> key;
  if (settings.find(option::key)) {
    const std::vector<Resource> keys = read_keys(settings);
    if (keys.size() != 1)
      throw CommandError(ExitCode::usage, "--key: doctor tries one key at a time");
    key = keys.front();
  }
  const commands::ServerOptions servers = read_server_options(settings);
  const commands::SessionOptions options = session_options(settings);
  const Duration timeout = timeout_without_ttl(servers);
  commands::Session session(options, servers, timeout);
  return commands::doctor(session, {.links = commands::links_to(options, servers, timeout),
                                    .key = std::move(key),
                                    .prints = prints_result(settings)});
}

}  // namespace redlock::cli
