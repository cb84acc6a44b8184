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
  std::vector<Resource> resources;  ///< sorted, each once
  Ttl ttl;
  WaitPolicy wait;
  int conflict_exit_code;  ///< what to exit with when another holds the lock
  Owner owner;
  ServerOptions servers;
  Duration server_timeout;
  Mode mode;
};

/// All of it, once the ttl is known; the owner's pid and command are the caller's to know. Throws CommandError.
LockOptions read_lock_options(const Settings& settings, std::vector<Resource> resources, Ttl ttl, ServerOptions servers, Owner owner);

/// The keys that -k names, sorted, each once. Throws CommandError (usage) when there is none, or one is no good, or they are too many to
/// be handed on in a variable.
std::vector<Resource> read_keys(const Settings& settings);

/// What to acquire: every key, each with a lease that is good for `needed_validity` at least, and with the lease that encloses us already.
/// `stays`: this process lives as long as the lease is used; see enclose().
std::vector<AcquireOrder> orders(const LockOptions& options, Duration needed_validity, bool stays);

/// The ttl, or nothing when it is not set. Refused when it leaves no room for `demands`, naming the smallest that does (PROTOCOL R10).
std::optional<Ttl> read_ttl(const Settings& settings, const TtlDemands& demands);

/// `fallback`, where no ttl was given. Refused in the same way.
Ttl require_room(Ttl fallback, const TtlDemands& demands);

/// --ttl of a command that cannot do without; `why` follows "needs --ttl DUR".
Ttl require_ttl(const Settings& settings, const TtlDemands& demands, std::string_view why);

/// Host and user.
Owner this_user();

/// Host, user and --note; pid and command are the caller's to fill in.
Owner read_owner(const Settings& settings);

}  // namespace redlock::cli
