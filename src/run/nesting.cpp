#include "run/nesting.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "child/ancestry.hpp"
#include "child/title.hpp"
#include "run/lease_file.hpp"
#include "store/local/digest.hpp"

namespace redlock::run {
namespace {

constexpr int most_looks = 100;
constexpr Milliseconds look_interval{10};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// The leases of all servers whose guard is an ancestor: of the others nobody can say whether they still enclose us.
std::vector<EnclosingLease> confirmed_leases() {
  std::vector<EnclosingLease> leases = read_held(variable("REDLOCK_HELD"));
  std::erase_if(leases, [](const EnclosingLease& lease) { return !child::is_ancestor(lease.guard); });
  return leases;
}

std::optional<Enclosure> find_in(const LeaseHandle& handle, const AcquireOrder& order, bool guarded) {
  for (const LeaseHandle::Part& part : handle.parts) {
    if (part.resource != order.resource || part.borrowed) continue;
    return Enclosure{id_of(part.token), part.token, part.fence, guarded, part.hold};
  }
  return std::nullopt;
}

bool wants(const std::vector<AcquireOrder>& orders, const LeaseHandle& handle) {
  return std::any_of(orders.begin(), orders.end(),
                     [&](const AcquireOrder& order) { return find_in(handle, order, /*guarded=*/true).has_value(); });
}

/// Whether it is about to release its lease. It may also be looking whether it can, and find that it must wait; that takes a moment.
bool ends(const ProcessIdentity& guard) {
  for (int i = 0; i < most_looks; ++i) {
    if (child::name_of(static_cast<pid_t>(guard.pid)) != ending_holder) return !child::is_ancestor(guard);
    std::this_thread::sleep_for(look_interval);
  }
  return true;
}

/// Adds to each order the lease that encloses us.
void enclose(std::vector<AcquireOrder>& orders, const ServerOptions& servers, bool stays) {
  std::vector<EnclosingLease> leases = enclosing_leases(servers);
  std::erase_if(leases, [&](const EnclosingLease& lease) { return !wants(orders, lease.handle); });
  if (stays && !leases.empty()) {
    child::set_name(nested_holder);
    std::erase_if(leases, [](const EnclosingLease& lease) { return ends(lease.guard); });
  }
  const auto left_to_us = LeaseHandle::from_text(variable("REDLOCK_LEASE"));
  const bool is_here = left_to_us && left_to_us->servers == fingerprint(servers);
  for (AcquireOrder& order : orders) {
    for (const EnclosingLease& lease : leases) {
      if (auto enclosure = find_in(lease.handle, order, /*guarded=*/true)) order.enclosure = std::move(enclosure);
    }
    if (!order.enclosure && is_here) order.enclosure = find_in(*left_to_us, order, /*guarded=*/false);
  }
}

std::string held_variable(const std::vector<Lease>& leases, const ServerOptions& servers) {
  std::vector<EnclosingLease> held = confirmed_leases();
  std::vector<Lease> kept;
  for (Lease lease : leases) {
    if (lease.tenure == Tenure::borrowed) continue;
    lease.tenure = Tenure::own;  // for those inside it is the guard that counts
    kept.push_back(lease);
  }
  const auto guard = child::identify(::getpid());
  if (guard && !kept.empty()) held.push_back({*guard, kept.front().ttl, handle_of(kept, fingerprint(servers))});
  return held_text(held);
}

}  // namespace

LeaseId id_of(const Token& token) {
  return {local::sha1_hex(token.secret())};
}

std::vector<EnclosingLease> enclosing_leases(const ServerOptions& servers) {
  std::vector<EnclosingLease> leases = confirmed_leases();
  const std::string ours = fingerprint(servers);
  std::erase_if(leases, [&](const EnclosingLease& lease) { return lease.handle.servers != ours; });
  return leases;
}

std::vector<AcquireOrder> orders(const LockOptions& options, Duration needed_validity, bool stays) {
  std::vector<AcquireOrder> orders;
  for (const Resource& resource : options.resources) {
    AcquireOrder order{resource, options.ttl, options.owner, needed_validity};
    order.mode = options.mode;
    orders.push_back(std::move(order));
  }
  enclose(orders, options.servers, stays);
  return orders;
}

std::vector<child::Variable> lease_variables(const std::vector<Lease>& leases, const ServerOptions& servers) {
  const LeaseVariables values = variables_of(handle_of(leases, fingerprint(servers)));
  return {{"REDLOCK_KEY", values.key},     {"REDLOCK_TOKEN", values.token}, {"REDLOCK_FENCE", values.fence},
          {"REDLOCK_LEASE", values.lease}, {"REDLOCK_SLOT", values.slot},   {"REDLOCK_HELD", held_variable(leases, servers)}};
}

}  // namespace redlock::run
