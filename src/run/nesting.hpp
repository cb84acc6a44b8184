#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/enclosing_lease.hpp"
#include "engine/attempt.hpp"
#include "run/options.hpp"

namespace redlock::run {

/// The leases on these servers that a living ancestor of ours keeps: from REDLOCK_HELD, what cannot be confirmed left out.
std::vector<EnclosingLease> enclosing_leases(const ServerOptions& servers);

/// The names in `comm` by which holders know of each other: one that lives on the lease of another, which must not be released sooner; and
/// one that is about to release its own.
inline constexpr std::string_view nested_holder = "lock-nested";
inline constexpr std::string_view ending_holder = "lock-ending";

/// What to acquire: every key, each with a lease that is good for `needed_validity` at least, and with the lease that encloses us already:
/// of those, or what REDLOCK_LEASE holds. `stays`: this process is a holder that lives as
/// long as the lease is used. Then it takes the name of one that is nested first, and borrows from nobody who is about to end: either that
/// one sees us and waits, or we see that it ends.
std::vector<AcquireOrder> orders(const LockOptions& options, Duration needed_validity, bool stays);

/// The name under which the servers know the lease of this token.
LeaseId id_of(const Token& token);

/// What a command under these leases finds in its environment. REDLOCK_HELD is what it is, and those of the leases that this process
/// keeps.
std::vector<child::Variable> lease_variables(const std::vector<Lease>& leases, const ServerOptions& servers);

}  // namespace redlock::run
