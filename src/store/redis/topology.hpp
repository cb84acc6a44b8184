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

/// What servers report about the addresses of other servers. It only decides where to connect.

/// An address as a server announces it; nothing for an unusable one (no host, port 0).
std::optional<Address> announced(std::string_view host, std::string_view port);

/// What is wrong with a loopback address that a server of another host announces: there it is that
/// host, here it is this one, where any other server may listen.
Fault foreign_loopback(const Address& announced);

/// The deadline for one of several servers that may know the address: each gets a third of the
/// remaining time, and the server itself has the rest.
constexpr Instant time_for_one(Instant now, Instant deadline) {
  return now + (deadline - now) / 3;
}

/// `MOVED slot host:port` or `ASK slot host:port`: not done here, do it there.
struct Redirect {
  Address to;
  bool ask;  ///< for this one question, after ASKING: the slot is moving
};

/// The redirect in an error reply; nothing when it is not a redirect; a Fault when its address is
/// unusable. `from` is the server that answered: an empty host is its own.
Result<std::optional<Redirect>, Fault> redirect_from(std::string_view error_text,
                                                     const Address& from);

/// Whether the key's slot is moving, and only some of several keys are here.
bool is_try_again(std::string_view error_text);

/// Some slots of a cluster, and their master.
struct SlotRange {
  std::uint16_t first;
  std::uint16_t last;
  Address master;
  std::vector<Address> replicas;
};

/// The range that has the slot; nullptr: none.
const SlotRange* range_of(const std::vector<SlotRange>& ranges, std::uint16_t slot);

/// What one node of a cluster says of it.
struct ClusterView {
  Address from;
  std::vector<SlotRange> slots;
  std::optional<std::uint64_t> epoch;  ///< the current epoch it knows; nothing: it does not tell

  /// The number of slots without a master.
  [[nodiscard]] std::size_t missing_slots() const;
};

/// The views by their epochs, the largest first, then those without one, in the order in which they
/// came (PROTOCOL R13). One with a smaller epoch may be right all the same: a replica that is cut
/// off counts up with each election that it loses.
std::vector<ClusterView> newest_first(std::vector<ClusterView> views);

/// Of views in that order those that may be used where no server can tell whether it is what they
/// say: the ones with the largest epoch, and those without one.
std::vector<ClusterView> newest_of(std::vector<ClusterView> views);

/// The current epoch in the answer to CLUSTER INFO; nothing when it tells none.
std::optional<std::uint64_t> epoch_from(const Reply& info);

/// What CLUSTER SLOTS answered. Ranges whose master has no address are left out. Source: Redis
/// Cluster specification, and the command's page for what it looks like in each version.
Result<std::vector<SlotRange>, Fault> slots_from(const Reply& reply, const Address& from);

}  // namespace redlock::redis
