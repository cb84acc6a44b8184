#pragma once

#include "cli/read_server_options.hpp"
#include "cli/settings.hpp"
#include "commands/options.hpp"
#include "core/types.hpp"
#include "core/validity.hpp"

namespace redlock::cli {

/// Reads the options of `run`, `acquire` and `hold` that concern the lock. The caller has
/// determined the ttl, and adds the owner's pid and command. Throws CommandError.
commands::LockOptions read_lock_options(const Settings& settings, std::vector<Resource> resources,
                                        Ttl ttl, commands::ServerOptions servers, Owner owner);

/// The setting by which several processes share the lock; nullopt if one holds it alone.
std::optional<Rival> find_sharing(const Settings& settings);

/// The keys of a setting, in their order. Throws CommandError (usage) if one is invalid.
std::vector<Resource> keys_in(const Setting& setting);

/// The keys of -k, sorted and without duplicates. Throws CommandError (usage) if there is none, one
/// is invalid, or they are too many to be passed on in an environment variable.
std::vector<Resource> read_keys(const Settings& settings);

/// The ttl, or nullopt if it is not set. Refuses a ttl that is too short for `demands`, and names
/// the shortest possible one (PROTOCOL R10).
std::optional<Ttl> read_ttl(const Settings& settings, const TtlDemands& demands);

/// `fallback`, for a command without --ttl. Refuses it if it is too short for `demands`.
Ttl require_room(const Settings& settings, Ttl fallback, const TtlDemands& demands);

/// The ttl of a command that requires --ttl. `why` follows "needs --ttl DUR" in the error message.
Ttl require_ttl(const Settings& settings, const TtlDemands& demands, std::string_view why);

/// An owner with host, user and note: --note, or else the URL of the CI job. The caller adds pid
/// and command.
Owner read_owner(const Settings& settings);

}  // namespace redlock::cli
