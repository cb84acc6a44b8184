#pragma once

#include "cli/settings.hpp"
#include "core/names.hpp"
#include "core/validity.hpp"
#include "engine/attempt.hpp"
#include "engine/waiter.hpp"

namespace redlock::cli {

/// The one key that -k names. Throws CommandError (usage) when there is none, more than one, or it is no good.
Resource read_key(const Settings& settings);

/// The ttl, or nothing when it is not set. Refused when it leaves no room for `demands`, naming the smallest that does (PROTOCOL R10).
std::optional<Ttl> read_ttl(const Settings& settings, const TtlDemands& demands);

/// --ttl of a command that cannot do without; `why` follows "needs --ttl DUR".
Ttl require_ttl(const Settings& settings, const TtlDemands& demands, std::string_view why);

/// -n, -w, --unavailable-wait and --retry-delay. -n and -w together: the one from the stronger place; a usage error in the same.
WaitPolicy read_wait_policy(const Settings& settings);

/// What to exit with when another holds the lock.
int read_conflict_exit_code(const Settings& settings);

/// Host, user and --note; pid and command are the caller's to fill in.
Owner read_owner(const Settings& settings);

}  // namespace redlock::cli
