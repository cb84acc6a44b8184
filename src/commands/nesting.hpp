#pragma once

#include <asio/awaitable.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "commands/options.hpp"
#include "core/lease_handle.hpp"
#include "engine/attempt.hpp"
#include "engine/server_set.hpp"

namespace redlock::commands {

/// The leases on these servers that a living ancestor of ours keeps or uses: those in REDLOCK_HELD
/// whose holder process is confirmed to be an ancestor.
std::vector<ParentLease> parent_leases(const ServerOptions& servers);

/// The orders for all keys. Each lease must be valid for `needed_validity` at least. If there is a
/// parent lease for a key, a confirmed one or that of REDLOCK_LEASE, the order names it.
std::vector<AcquireOrder> make_orders(const LockOptions& options, Duration needed_validity);

/// Whether the servers confirm the parent lease of one of these orders. For a command that needs
/// leases of its own, to check before it waits. If too few servers answer, a lease may still be
/// inherited later, so also check the granted leases with are_our_own().
asio::awaitable<bool> has_parent_lease(ServerSet& server_set,
                                       const std::vector<AcquireOrder>& orders);

/// Whether this process keeps all of these leases, and uses or hands on none of another's.
bool are_our_own(const std::vector<Lease>& leases);

/// The message that refuses an option that needs leases of its own; `advice` names the remedy.
std::string needs_own_lease_text(std::string_view option, std::string_view advice);

/// The name under which the servers know the lease of this token.
LeaseId id_of(const Token& token);

/// The environment variables for a command under these leases. REDLOCK_HELD names the confirmed
/// parent leases, and these with this process as their guard: it keeps or uses each.
std::vector<guard::Variable> lease_variables(const std::vector<Lease>& leases,
                                             const ServerOptions& servers);

/// Whether lease_variables() sets the variable of this name, for some lease.
bool sets_variable(std::string_view name);

}  // namespace redlock::commands
