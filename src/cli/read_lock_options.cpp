#include "cli/read_lock_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/ci_job.hpp"
#include "cli/hints.hpp"
#include "cli/option_rows.hpp"
#include "commands/command_error.hpp"
#include "commands/this_user.hpp"
#include "output/text_parts.hpp"
#include "support/duration.hpp"
#include "support/number.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

/// With these limits a handle for all keys fits into an environment variable (128 KiB,
/// MAX_ARG_STRLEN) and a token file.
constexpr std::size_t max_keys = 64;
constexpr std::size_t max_key_bytes = 32 * 1024;

/// Whether -n decides if the command waits, not -w. The one from the stronger source does; both
/// from the same source are a usage error.
bool nonblock_decides(const Settings& settings) {
  if (!settings.get(option::nonblock)) return false;
  const auto wait = settings.find(option::wait);
  const auto nonblock = settings.find(option::nonblock);
  if (wait && wait->origin == nonblock->origin) {
    const bool may_mean_command = wait->typed == "--timeout";
    Settings::refuse_both(*nonblock, *wait,
                          may_mean_command ? " (a limit for the command is --max-hold)" : "");
  }
  return !wait || nonblock->origin < wait->origin;
}

/// Reads -n, -w, --unavailable-wait and --retry-delay.
WaitPolicy read_wait_policy(const Settings& settings) {
  WaitPolicy policy;
  policy.wait = settings.get(option::wait);
  if (policy.wait == infinite_duration) policy.wait.reset();
  if (nonblock_decides(settings)) policy.wait = Duration::zero();
  policy.unavailable_wait = settings.get(option::unavailable_wait);
  policy.password_may_change = settings.get(option::password_file).has_value();
  policy.retry_delay = settings.get(option::retry_delay);
  return policy;
}

/// The setting because of which the command does not wait; nullopt if it waits.
std::optional<Rival> find_nonblocking(const Settings& settings, const WaitPolicy& policy) {
  if (policy.wait != Duration::zero()) return std::nullopt;
  const auto setting =
      nonblock_decides(settings) ? settings.find(option::nonblock) : settings.find(option::wait);
  return rival_of(*setting, "-n (or --wait 0)", "-w infinity");
}

/// The given one of --supersede and --replace; empty if neither was given.
std::string_view newest_wins_option(const Settings& settings) {
  if (settings.get(option::replace)) return "--replace";
  return settings.get(option::supersede) ? "--supersede" : "";
}

/// Only a command that waits for a single exclusive lock can supersede other waiters.
void check_newest_wins(const Settings& settings, const WaitPolicy& wait, std::size_t keys) {
  const std::string_view given = newest_wins_option(settings);
  if (given.empty()) return;
  const auto refuse = [given](std::string_view why) {
    throw CommandError(ExitCode::usage, fmt::format("{} {}", given, why));
  };
  if (settings.get(option::replace) && settings.get(option::supersede))
    refuse("supersedes older waiters, too; leave out --supersede");
  if (const auto rival = find_nonblocking(settings, wait)) {
    refuse(fmt::format("takes the place of older waiters, and {} does not wait; {}", rival->name,
                       rival->remedy));
  }
  if (const auto rival = find_sharing(settings)) {
    refuse(fmt::format(
        "is for a lock that one process holds alone: with {} several waiters get in; {}",
        rival->name, rival->remedy));
  }
  if (keys > 1) refuse("allows only one -k: each key could have a different newest waiter");
}

/// Only a command that may wait can limit the number of waiters.
std::optional<std::size_t> read_max_waiting(const Settings& settings, const WaitPolicy& wait) {
  const auto max_waiting = settings.get(option::max_waiting);
  if (!max_waiting) return std::nullopt;
  const Setting setting = *settings.find(option::max_waiting);
  if (const auto rival = find_nonblocking(settings, wait)) {
    Settings::refuse(setting, fmt::format("limits how many wait, and {} does not wait; {}",
                                          rival->name, rival->remedy));
  }
  if (const auto newest_wins = newest_wins_option(settings); !newest_wins.empty()) {
    Settings::refuse(setting, fmt::format("keeps newcomers out, and {} puts them first; leave one "
                                          "of them out",
                                          newest_wins));
  }
  return static_cast<std::size_t>(*max_waiting);
}

std::size_t read_take(const Settings& settings, std::size_t slots) {
  const auto take = settings.get(option::take);
  if (!take) return 1;
  const Setting setting = *settings.find(option::take);
  if (slots == 0) Settings::refuse(setting, "needs --slots");
  if (*take > slots)
    Settings::refuse(setting, fmt::format("{} is more than the {} of {}", *take, slots,
                                          settings.find(option::slots)->where));
  return static_cast<std::size_t>(*take);
}

/// A mode without `take`, and the setting that chose it; nullopt: the default.
struct ChosenMode {
  Mode mode;
  std::optional<Setting> setting;
};

/// Reads -x, -s and --slots. The one from the strongest source wins; two from the same source are a
/// usage error.
ChosenMode choose_mode(const Settings& settings) {
  std::optional<Setting> chosen;
  std::optional<Setting> rival;
  Mode mode;
  const auto choose = [&](const OptionRow& option, const Mode& its_mode) {
    auto setting = settings.find(option);
    if (chosen && chosen->origin < setting->origin) return;
    rival = chosen && chosen->origin == setting->origin ? std::move(chosen) : std::nullopt;
    chosen = std::move(setting);
    mode = its_mode;
  };
  if (settings.find(option::exclusive) && settings.get(option::exclusive))
    choose(option::exclusive, {});
  if (settings.get(option::shared)) choose(option::shared, {.shared = true});
  if (auto pool = settings.get(option::slots))
    choose(option::slots, {.shared = true, .slots = pool->size, .only = std::move(pool->names)});
  if (rival) Settings::refuse_both(*rival, *chosen);
  return {mode, std::move(chosen)};
}

Mode read_mode(const Settings& settings, const std::vector<Resource>& resources) {
  auto [mode, chosen] = choose_mode(settings);
  mode.take = read_take(settings, mode.slots);
  if (mode.slots == 0) return mode;
  if (resources.size() > 1)
    Settings::refuse(*chosen, "allows only one -k: REDLOCK_SLOT is one slot");
  return mode;
}

/// The pool of a hold with --slot. Without it a hold is for the whole lock, also where a general
/// setting has --slots.
Mode pool_of_hold(const Settings& settings) {
  if (!settings.find(option::slot)) {
    if (settings.is_on_line(option::slots)) {
      Settings::refuse(*settings.find(option::slots),
                       "needs --slot, the one to hold; leave it out to hold the whole lock");
    }
    return {};
  }
  auto pool = settings.get(option::slots);
  if (!pool) return {};
  return {.shared = true, .slots = pool->size, .only = std::move(pool->names)};
}

/// The mode for the slot of --slot, if it is given.
Mode in_slot(const Settings& settings, Mode mode) {
  const auto slot = settings.get(option::slot);
  if (!slot) return mode;
  const Setting setting = *settings.find(option::slot);
  if (mode.slots == 0) Settings::refuse(setting, "needs --slots");
  if (mode.take > 1) Settings::refuse_both(setting, *settings.find(option::take));
  const auto number = whole_number<std::size_t>(*slot);
  const bool is_there = mode.only.empty() ? number && *number < mode.slots
                                          : std::ranges::find(mode.only, *slot) != mode.only.end();
  if (!is_there) {
    Settings::refuse(setting, fmt::format("{} is not among the slots of {}", *slot,
                                          settings.find(option::slots)->where));
  }
  mode.only = {*slot};
  mode.slots = 1;
  return mode;
}

/// `1s is too short to renew the lease and to stop the command in time; with --grace 2s the
/// smallest that works is 4384ms`
std::string too_short_text(Ttl ttl, const TtlDemands& demands) {
  std::string given;
  const auto add = [&](std::string_view option, std::optional<Duration> span) {
    if (span)
      given +=
          fmt::format("{}{} {}", given.empty() ? "with " : " and ", option, format_duration(*span));
  };
  add("--server-timeout", demands.server_timeout);
  if (demands.supervised) add("--grace", demands.grace);
  const auto smallest = min_ttl(demands);
  return fmt::format(
      "{} is too short to renew the lease{} in time; {}{}", format_duration(ttl.length()),
      demands.supervised ? " and to stop the command" : "", given.empty() ? "" : given + " ",
      smallest ? fmt::format("the smallest that works is {}ms", smallest->length().count())
               : "none is long enough");
}

/// Warns of white space at the end and of control characters, which are usually unintended:
/// `deploy` and `deploy\r` are different locks.
void warn_of_odd_keys(const Settings& settings, const std::vector<Resource>& resources) {
  std::vector<Resource> odd;
  std::ranges::copy_if(resources, std::back_inserter(odd), [](const Resource& resource) {
    const std::string& key = resource.key();
    return key.back() == ' ' || std::ranges::any_of(key, is_control);
  });
  if (odd.empty()) return;
  make_console(settings).notice(
      fmt::format("--key: '{}' ends in white space or holds a control character, which makes it a "
                  "different lock",
                  output::keys_text(odd)));
}

/// What to write instead of a command line without a key.
std::string no_key_text(const CommandLine& line) {
  if (line.command->bit == for_run) return missing_key_text(line);
  if (line.command->bit == for_stop) return "stop needs KEY: the lock whose command to stop";
  if (line.command->bit == for_hold) return "hold needs KEY: the lock to hold";
  if (line.command->bit == for_release) return "release --force needs KEY: the lock to break";
  return fmt::format("{} needs -k KEY: the name of the lock", line.command->name);
}

}  // namespace

std::optional<Rival> find_sharing(const Settings& settings) {
  const ChosenMode chosen = choose_mode(settings);
  if (!chosen.mode.shared) return std::nullopt;
  return rival_of(*chosen.setting, "-s or --slots", "-x");
}

std::vector<Resource> keys_in(const Setting& setting) {
  std::vector<Resource> resources;
  for (const std::string& key : setting.values) {
    auto resource = Resource::from(key);
    if (!resource) throw CommandError(ExitCode::usage, "--key: " + describe(resource.error()));
    resources.push_back(std::move(*resource));
  }
  return resources;
}

std::vector<Resource> read_keys(const Settings& settings) {
  const auto setting = settings.find(option::key);
  if (!setting) throw CommandError(ExitCode::usage, no_key_text(settings.line()));
  std::size_t bytes = 0;
  for (const std::string& key : setting->values) bytes += key.size();
  std::vector<Resource> resources = keys_in(*setting);
  std::sort(resources.begin(), resources.end());
  resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
  if (resources.size() > max_keys || bytes > max_key_bytes) {
    throw CommandError(ExitCode::usage,
                       fmt::format("--key: at most {} keys at a time, of {} bytes together",
                                   max_keys, max_key_bytes));
  }
  return resources;
}

std::optional<Ttl> read_ttl(const Settings& settings, const TtlDemands& demands) {
  const auto span = settings.get(option::ttl);
  if (!span) return std::nullopt;
  const Ttl ttl = Ttl::from(*span).value();
  if (leaves_room(ttl, demands)) return ttl;
  Settings::refuse(*settings.find(option::ttl), too_short_text(ttl, demands));
}

Ttl require_room(const Settings& settings, Ttl fallback, const TtlDemands& demands) {
  if (leaves_room(fallback, demands)) return fallback;
  throw CommandError(settings.code_of({&option::grace, &option::server_timeout}),
                     "the default --ttl of " + too_short_text(fallback, demands));
}

Ttl require_ttl(const Settings& settings, const TtlDemands& demands, std::string_view why) {
  if (const auto ttl = read_ttl(settings, demands)) return *ttl;
  throw CommandError(ExitCode::usage,
                     fmt::format("{} needs --ttl DUR{}", settings.line().command->name, why));
}

commands::LockOptions read_lock_options(const Settings& settings, std::vector<Resource> resources,
                                        Ttl ttl, commands::ServerOptions servers, Owner owner) {
  warn_of_odd_keys(settings, resources);
  const Commands command = settings.line().command->bit;
  // A hold does not raise the guard by its length: the next one would wait for a day after a
  // restart.
  if ((option::ttl.spec().commands & command) != 0)
    raise_restart_guard(settings, servers, option::ttl, ttl.length());
  const Duration timeout = servers.timeout.value_or(default_server_timeout(ttl));
  const bool may_share = (option::shared.spec().commands & command) != 0;
  Mode mode = may_share ? read_mode(settings, resources) : pool_of_hold(settings);
  const WaitPolicy wait = read_wait_policy(settings);
  check_newest_wins(settings, wait, resources.size());
  owner.slots = mode.slots;
  owner.take = mode.take;
  mode = in_slot(settings, std::move(mode));
  owner.priority = static_cast<unsigned>(settings.get(option::priority));
  const bool insists_on_wait = settings.find(option::wait) && wait.wait != Duration::zero();
  return {.resources = std::move(resources),
          .ttl = ttl,
          .wait = wait,
          .conflict_exit_code = static_cast<int>(settings.get(option::conflict_exit_code)),
          .owner = std::move(owner),
          .servers = std::move(servers),
          .server_timeout = timeout,
          .mode = std::move(mode),
          .supersedes = !newest_wins_option(settings).empty(),
          .replaces = settings.get(option::replace),
          .max_waiting = read_max_waiting(settings, wait),
          .insists_on_wait = insists_on_wait};
}

Owner read_owner(const Settings& settings) {
  Owner owner = commands::this_user();
  const auto note = settings.get(option::note);
  owner.note = note ? *note : ci_job_url();
  return owner;
}

}  // namespace redlock::cli
