#pragma once

#include <string>
#include <vector>

#include "cli/server_options.hpp"
#include "core/enclosing_lease.hpp"
#include "engine/attempt.hpp"

namespace redlock::cli {

/// The leases on these servers that a living ancestor of ours keeps: from REDLOCK_HELD, what cannot be confirmed left out.
std::vector<EnclosingLease> enclosing_leases(const ServerOptions& servers);

/// Adds to each order the lease that encloses us: of those, or what REDLOCK_LEASE holds.
void enclose(std::vector<AcquireOrder>& orders, const ServerOptions& servers);

/// The name under which the servers know the lease of this token.
LeaseId id_of(const Token& token);

/// What REDLOCK_HELD is to be for a command under these leases: what it is, and those of them that this process keeps.
std::string held_variable(const std::vector<Lease>& leases, const ServerOptions& servers);

}  // namespace redlock::cli
