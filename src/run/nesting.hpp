#pragma once

#include <asio/awaitable.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/lease_handle.hpp"
#include "engine/attempt.hpp"
#include "engine/server_set.hpp"
#include "run/options.hpp"
#include "run/parent_links.hpp"

namespace redlock::run {

/// The leases on these servers that a living ancestor of ours keeps: from REDLOCK_HELD, without
/// those that cannot be confirmed.
std::vector<ParentLease> parent_leases(const ServerOptions& servers);

/// What to acquire: every key, each with a lease that is valid for `needed_validity` at least, and
/// with its parent lease, if there is one: a confirmed lease, or that of REDLOCK_LEASE. `links`: of
/// a process that lives as long as the lease is used. Then only leases that their parent keeps for
/// so long are inherited. Null: for a process that ends in a moment.
asio::awaitable<std::vector<AcquireOrder>> make_orders(const LockOptions& options,
                                                       Duration needed_validity,
                                                       ParentLinks* links);

/// Whether the servers confirm the parent lease of one of these orders: for what needs leases of
/// its own, before it waits for the others. A lease that too few servers answer for may be
/// inherited later all the same: look at what was granted, too. One that was handed over is taken
/// over, as inherit() does: it may last longer afterwards, and never shorter.
asio::awaitable<bool> has_parent_lease(ServerSet& server_set,
                                       const std::vector<AcquireOrder>& orders);

/// Whether no other process keeps one of these, or handed it over.
bool are_our_own(const std::vector<Lease>& leases);

/// Why an option that needs leases of its own is refused; `advice` says what to do instead.
std::string needs_own_lease_text(std::string_view option, std::string_view advice);

/// The name under which the servers know the lease of this token.
LeaseId id_of(const Token& token);

/// What a command under these leases finds in its environment. REDLOCK_HELD names the confirmed
/// parent leases and the leases that this process keeps.
std::vector<child::Variable> lease_variables(const std::vector<Lease>& leases,
                                             const ServerOptions& servers);

}  // namespace redlock::run
