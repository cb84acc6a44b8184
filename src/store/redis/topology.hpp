#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/vote.hpp"
#include "store/redis/endpoint.hpp"
#include "store/reply.hpp"
#include "support/boot_clock.hpp"
#include "support/result.hpp"

namespace redlock::redis {

/// What servers tell of where other servers are. Nothing of it is believed further than a connection goes.

/// An address as a server announces it; nothing for what leads nowhere (no host, port 0).
std::optional<Address> announced(std::string_view host, std::string_view port);

/// Until when one of several who may know the way is waited for: each gets a third of what is left, and the server itself has the rest.
constexpr Instant time_for_one(Instant now, Instant deadline) {
  return now + (deadline - now) / 3;
}

/// `MOVED slot host:port` or `ASK slot host:port`: not done here, do it there.
struct Redirect {
  Address to;
  bool ask;  ///< for this once, behind ASKING: the slot is on its way
};

/// The redirect that an error reply is; nothing when it is none; a Fault when it leads nowhere. `from` is who answered: an empty host is
/// its own.
Result<std::optional<Redirect>, Fault> redirect_from(std::string_view error_text, const Address& from);

/// Whether the key's slot is on its way, and of several keys not all are here.
bool is_try_again(std::string_view error_text);

/// Some slots of a cluster, and who has them.
struct SlotRange {
  std::uint16_t first;
  std::uint16_t last;
  Address master;
  std::vector<Address> replicas;
};

/// What CLUSTER SLOTS answered. Ranges whose master has no address are left out. Source: Redis Cluster specification, and the command's
/// page for what it looks like in each version.
Result<std::vector<SlotRange>, Fault> slots_from(const Reply& reply, const Address& from);

}  // namespace redlock::redis
