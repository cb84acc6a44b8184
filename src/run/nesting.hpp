#pragma once

#include <asio/awaitable.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/parent_lease.hpp"
#include "engine/attempt.hpp"
#include "run/options.hpp"
#include "run/parent_links.hpp"

namespace redlock::run {

/// The leases on these servers that a living ancestor of ours keeps: from REDLOCK_HELD, what cannot be confirmed left out.
std::vector<ParentLease> parent_leases(const ServerOptions& servers);

/// What to acquire: every key, each with a lease that is good for `needed_validity` at least, and with the lease that encloses us already:
/// of those, or what REDLOCK_LEASE holds. `links`: of a process that lives as long as the lease is used. Then only what its parent keeps
/// for so long is inherited; null: of one that is gone in a moment.
asio::awaitable<std::vector<AcquireOrder>> make_orders(const LockOptions& options, Duration needed_validity, ParentLinks* links);

/// The name under which the servers know the lease of this token.
LeaseId id_of(const Token& token);

/// What a command under these leases finds in its environment. REDLOCK_HELD is what it is, and those of the leases that this process
/// keeps.
std::vector<child::Variable> lease_variables(const std::vector<Lease>& leases, const ServerOptions& servers);

}  // namespace redlock::run
