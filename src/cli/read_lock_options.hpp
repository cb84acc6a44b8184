#pragma once

#include "cli/read_server_options.hpp"
#include "cli/settings.hpp"
#include "core/types.hpp"
#include "core/validity.hpp"
#include "run/options.hpp"

namespace redlock::cli {

/// All options of `run` and `acquire` that concern the lock, once the ttl is known; the caller adds
/// the owner's pid and command. Throws CommandError.
run::LockOptions read_lock_options(const Settings& settings, std::vector<Resource> resources,
                                   Ttl ttl, run::ServerOptions servers, Owner owner);

/// The keys of a setting, as they stand there. Throws CommandError (usage) when one is invalid.
std::vector<Resource> keys_in(const Setting& setting);

/// The keys that -k names, sorted, each once. Throws CommandError (usage) when there is none, one
/// is invalid, or they are too many to be handed on in a variable.
std::vector<Resource> read_keys(const Settings& settings);

/// The ttl, or nothing when it is not set. Refused when it leaves no room for `demands`, naming the
/// smallest that does (PROTOCOL R10).
std::optional<Ttl> read_ttl(const Settings& settings, const TtlDemands& demands);

/// `fallback`, where no ttl was given. Refused in the same way.
Ttl require_room(const Settings& settings, Ttl fallback, const TtlDemands& demands);

/// --ttl of a command that requires it; `why` follows "needs --ttl DUR".
Ttl require_ttl(const Settings& settings, const TtlDemands& demands, std::string_view why);

/// This host, as owner records name it.
std::string host_name();

/// Host and user.
Owner this_user();

/// Host, user and --note, or else the CI job's URL; the caller fills in pid and command.
Owner read_owner(const Settings& settings);

}  // namespace redlock::cli
