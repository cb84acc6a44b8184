#include "commands/nesting.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "commands/lease_file.hpp"
#include "engine/inherited_lease.hpp"
#include "proc/ancestry.hpp"
#include "support/digest.hpp"
#include "support/environment.hpp"

namespace redlock::commands {
namespace {

constexpr const char* held_name = "REDLOCK_HELD";

/// The leases in REDLOCK_HELD, on any servers, whose guard is an ancestor of ours. Others may no
/// longer be leases of a parent run.
std::vector<ParentLease> confirmed_leases() {
  std::vector<ParentLease> leases = read_held(environment_value(held_name));
  std::erase_if(leases, [](const ParentLease& lease) { return !proc::is_ancestor(lease.guard); });
  return leases;
}

std::optional<ParentClaim> find_in(const LeaseHandle& handle, const AcquireOrder& order) {
  for (const LeaseHandle::Part& part : handle.parts) {
    if (part.resource != order.resource || part.inherited) continue;
    return ParentClaim{id_of(part.token), part.token, part.fence, part.hold};
  }
  return std::nullopt;
}

std::string held_variable(std::vector<Lease> leases, const ServerOptions& servers) {
  std::vector<ParentLease> held = confirmed_leases();
  // To nested runs they are confirmed by their guard.
  for (Lease& lease : leases) lease.keeping = Keeping::own;
  if (const auto guard = proc::identify(::getpid()))
    held.push_back({*guard, leases.front().ttl, handle_of(leases, fingerprint(servers))});
  return held_text(held);
}

}  // namespace

LeaseId id_of(const Token& token) {
  return {sha1_hex(token.secret())};
}

std::vector<ParentLease> parent_leases(const ServerOptions& servers) {
  std::vector<ParentLease> leases = confirmed_leases();
  const std::string ours = fingerprint(servers);
  std::erase_if(leases, [&](const ParentLease& lease) { return lease.handle.servers != ours; });
  return leases;
}

std::vector<AcquireOrder> make_orders(const LockOptions& options, Duration needed_validity) {
  std::vector<AcquireOrder> orders;
  for (const Resource& resource : options.resources) {
    AcquireOrder order{resource, options.ttl, options.owner, needed_validity};
    order.mode = options.mode;
    order.max_waiting = options.max_waiting;
    order.until = options.until;
    if (options.supersedes) {
      order.supersession = std::make_shared<Supersession>();
      order.supersession->replaces = options.replaces;
    }
    orders.push_back(std::move(order));
  }

  const std::vector<ParentLease> parents = parent_leases(options.servers);
  for (AcquireOrder& order : orders) {
    std::vector<ProcessIdentity> guards;
    // The innermost comes last.
    for (const ParentLease& lease : parents) {
      auto parent_claim = find_in(lease.handle, order);
      if (!parent_claim) continue;
      // Guards around another lease of the key do not protect this one.
      if (order.parent_claim && order.parent_claim->id != parent_claim->id) guards.clear();
      guards.push_back(lease.guard);
      order.parent_claim = std::move(parent_claim);
    }
    if (guards.empty()) continue;
    // Any of them may outlive the others, and stops us with its process tree.
    order.parent_claim->guard_lives = [guards = std::move(guards)] {
      return std::ranges::any_of(
          guards, [](const ProcessIdentity& guard) { return proc::is_ancestor(guard); });
    };
  }

  const auto handed_over = LeaseHandle::from_text(environment_value("REDLOCK_LEASE"));
  if (handed_over && handed_over->servers == fingerprint(options.servers)) {
    for (AcquireOrder& order : orders) {
      if (!order.parent_claim) order.parent_claim = find_in(*handed_over, order);
    }
  }
  return orders;
}

asio::awaitable<bool> has_parent_lease(ServerSet& server_set,
                                       const std::vector<AcquireOrder>& orders) {
  for (const AcquireOrder& order : orders) {
    if (!order.parent_claim) continue;
    const bool is_valid = co_await redlock::has_parent_lease(server_set, order);
    if (is_valid) co_return true;
  }
  co_return false;
}

bool are_our_own(const std::vector<Lease>& leases) {
  return std::ranges::all_of(leases,
                             [](const Lease& lease) { return lease.keeping == Keeping::own; });
}

std::string needs_own_lease_text(std::string_view option, std::string_view advice) {
  return fmt::format(
      "{} needs a lease of its own, but the enclosing run or acquire holds the lock: {}", option,
      advice);
}

std::vector<guard::Variable> lease_variables(const std::vector<Lease>& leases,
                                             const ServerOptions& servers) {
  std::vector<guard::Variable> variables = variables_of(handle_of(leases, fingerprint(servers)));
  variables.push_back({held_name, held_variable(leases, servers)});
  return variables;
}

bool sets_variable(std::string_view name) {
  const auto has_name = [name](const guard::Variable& variable) { return variable.name == name; };
  return name == held_name || std::ranges::any_of(variables_of({}), has_name);
}

}  // namespace redlock::commands
