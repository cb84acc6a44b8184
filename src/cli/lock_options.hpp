#pragma once

#include "cli/server_options.hpp"
#include "cli/settings.hpp"
#include "core/names.hpp"
#include "core/validity.hpp"
#include "engine/attempt.hpp"
#include "engine/waiter.hpp"

namespace redlock::cli {

/// What `run` and `acquire` were told about the lock.
struct LockOptions {
  Resource resource;
  Ttl ttl;
  WaitPolicy wait;
  int conflict_exit_code;  ///< what to exit with when another holds the lock
  Owner owner;
  ServerOptions servers;
  Duration server_timeout;
};

/// All of it, once the ttl is known; the owner's pid and command are the caller's to know. Throws CommandError.
LockOptions read_lock_options(const Settings& settings, Resource resource, Ttl ttl, ServerOptions servers, Owner owner);

/// The one key that -k names. Throws CommandError (usage) when there is none, more than one, or it is no good.
Resource read_key(const Settings& settings);

/// The ttl, or nothing when it is not set. Refused when it leaves no room for `demands`, naming the smallest that does (PROTOCOL R10).
std::optional<Ttl> read_ttl(const Settings& settings, const TtlDemands& demands);

/// --ttl of a command that cannot do without; `why` follows "needs --ttl DUR".
Ttl require_ttl(const Settings& settings, const TtlDemands& demands, std::string_view why);

/// Host, user and --note; pid and command are the caller's to fill in.
Owner read_owner(const Settings& settings);

}  // namespace redlock::cli
