#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/vote.hpp"
#include "store/redis/endpoint.hpp"
#include "store/script.hpp"
#include "support/boot_clock.hpp"
#include "support/result.hpp"

namespace redlock::redis {

/// What servers report about the addresses of other servers. It only determines where to connect.

/// An address that a server announces; nullopt if it is unusable (no host, port 0).
std::optional<Address> announced(std::string_view host, std::string_view port);

/// The fault for a loopback address that a server on another host announces. There it means that
/// host; here it means this one, where an unrelated server may listen.
Fault foreign_loopback(const Address& announced);

/// The fault with the address of its server in front, escaped for the terminal.
Fault fault_at(const Address& address, Fault fault);

/// `MOVED slot host:port` or `ASK slot host:port`: the server did nothing, and names another one.
struct Redirect {
  Address to;
  bool ask;  ///< only for this question, after ASKING: the slot is moving
};

/// The redirect in an error reply; nullopt if it is not a redirect; a Fault if its address is
/// unusable. `from` is the server that answered; an empty host in the reply means that server's.
Result<std::optional<Redirect>, Fault> redirect_from(std::string_view error_text,
                                                     const Address& from);

/// Whether the server replied that the slot is moving and it has only some of the keys.
bool is_try_again(std::string_view error_text);

/// A range of a cluster's slots, and their master.
struct SlotRange {
  std::uint16_t first;
  std::uint16_t last;
  Address master;
  std::vector<Address> replicas;
};

/// The range that contains the slot; nullptr if there is none.
const SlotRange* range_of(const std::vector<SlotRange>& ranges, std::uint16_t slot);

/// The masters of these ranges, with their replicas if asked for, each server once.
std::vector<Address> servers_in(const std::vector<SlotRange>& ranges, bool with_replicas);

/// A cluster as one of its nodes reports it.
struct ClusterView {
  Address from;
  std::vector<SlotRange> slots;
  std::optional<std::uint64_t> epoch;  ///< the current epoch that it knows; nullopt: not reported

  /// The number of slots without a master.
  [[nodiscard]] std::size_t missing_slots() const;
};

/// Sorts the views by epoch, the largest first, then those without one; equal ones keep their order
/// (PROTOCOL R13). A view with a smaller epoch may be right all the same: a replica that is cut off
/// increments its epoch with each election that it loses.
std::vector<ClusterView> newest_first(std::vector<ClusterView> views);

/// Of views in that order, those that may be used if the servers themselves cannot confirm them:
/// the ones with the largest epoch, and those without one.
std::vector<ClusterView> newest_of(std::vector<ClusterView> views);

/// The current epoch in the reply to CLUSTER INFO; nullopt if there is none.
std::optional<std::uint64_t> epoch_from(const Reply& info);

/// The ranges in the reply to CLUSTER SLOTS, without those whose master has no address. Source:
/// Redis Cluster specification, and the command's page for the format of each version.
Result<std::vector<SlotRange>, Fault> slots_from(const Reply& reply, const Address& from);

}  // namespace redlock::redis
