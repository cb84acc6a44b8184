#include "cli/lease_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/option_rows.hpp"
#include "cli/read_lock_options.hpp"
#include "commands/command_error.hpp"
#include "commands/lease_file.hpp"
#include "output/text_parts.hpp"
#include "support/environment.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

/// Whether this is one of its slots, by name or by number.
bool has_slot(const Hold& hold, const std::string& slot) {
  return std::ranges::find(hold.slot_names, slot) != hold.slot_names.end() ||
         std::ranges::any_of(
             hold.slots, [&slot](std::size_t number) { return std::to_string(number) == slot; });
}

/// A handle from only the key and the token; its other parts stay unknown.
std::optional<LeaseHandle> from_parts(const Settings& settings,
                                      const commands::ServerOptions& servers) {
  const std::string text = environment_value("REDLOCK_TOKEN");
  const auto token = Token::from_text(text);
  if (!text.empty() && !token)
    throw CommandError(ExitCode::usage, "REDLOCK_TOKEN is not a token of redlock-cli");
  if (!token) return std::nullopt;
  if (settings.find(option::key)) {
    const std::vector<Resource> resources = read_keys(settings);
    if (resources.size() != 1)
      throw CommandError(ExitCode::usage,
                         "--key: REDLOCK_TOKEN is for one key; REDLOCK_LEASE holds several");
    return LeaseHandle{{{resources.front(), *token, Fence()}}, commands::fingerprint(servers)};
  }
  const std::string key = environment_value("REDLOCK_KEY");
  if (key.empty()) return std::nullopt;
  auto resource = Resource::from(key);
  if (!resource) throw CommandError(ExitCode::usage, "REDLOCK_KEY: " + describe(resource.error()));
  return LeaseHandle{{{std::move(*resource), *token, Fence()}}, commands::fingerprint(servers)};
}

std::optional<LeaseHandle> from_environment(const Settings& settings,
                                            const commands::ServerOptions& servers) {
  const std::string text = environment_value("REDLOCK_LEASE");
  if (text.empty()) return from_parts(settings, servers);
  auto handle = LeaseHandle::from_text(text);
  if (!handle)
    throw CommandError(ExitCode::usage,
                       "REDLOCK_LEASE is not a lease of this version of redlock-cli");
  return handle;
}

std::optional<LeaseHandle> from_file(const Settings& settings) {
  const auto path = settings.get(option::token_file);
  if (!path) return std::nullopt;
  auto handle = commands::read_lease_file(*path);
  if (!handle) throw CommandError(ExitCode::config, handle.error());
  return *handle;
}

}  // namespace

LeaseHandle find_lease(const Settings& settings, const commands::ServerOptions& servers) {
  auto handle = from_file(settings);
  if (!handle) handle = from_environment(settings, servers);
  if (!handle) {
    throw CommandError(ExitCode::usage,
                       "no lease: neither --token-file nor REDLOCK_LEASE (nor REDLOCK_KEY and "
                       "REDLOCK_TOKEN) is set; `redlock-cli acquire --export` sets them");
  }
  std::vector<Resource> resources;
  for (const LeaseHandle::Part& part : handle->parts) resources.push_back(part.resource);
  if (settings.find(option::key) && read_keys(settings) != resources) {
    throw CommandError(ExitCode::usage,
                       fmt::format("the lease is for {}, not for {}", output::keys_text(resources),
                                   output::keys_text(read_keys(settings))));
  }
  if (handle->servers != commands::fingerprint(servers)) {
    throw CommandError(
        ExitCode::config,
        fmt::format(
            "the lease on {} was acquired on other servers, or on the same in another spelling; "
            "configure them as they were then. Configured now: {}",
            output::keys_text(resources),
            escape_for_terminal(fmt::format("{}", fmt::join(commands::names_of(servers), ", ")))));
  }
  return *handle;
}

bool is_of_slot_alone(const LeaseHandle& lease, const std::string& slot) {
  if (lease.parts.size() != 1) return false;
  const Hold& hold = lease.parts.front().hold;
  return std::max(hold.slots.size(), hold.slot_names.size()) == 1 && has_slot(hold, slot);
}

bool names_other_locks(const Settings& settings, const commands::ServerOptions& servers,
                       const std::optional<std::string>& slot) {
  if (!settings.find(option::key) || settings.get(option::token_file)) return false;
  const auto handle = from_environment(settings, servers);
  if (!handle) return true;
  const std::vector<Resource> resources = read_keys(settings);
  return std::ranges::none_of(handle->parts, [&](const LeaseHandle::Part& part) {
    return std::ranges::find(resources, part.resource) != resources.end() &&
           (!slot || has_slot(part.hold, *slot));
  });
}

}  // namespace redlock::cli
