#pragma once

#include <optional>

#include "core/names.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// The times that follow from a ttl. Pure arithmetic; the rules are PROTOCOL R1 and R10.

/// By how much a server's clock may run faster than ours within one ttl: 1 % for the rates, 2 ms for the rounding of expiries.
Duration drift(Ttl ttl);

/// Time kept between the last SIGKILL and the end of the validity, for the kernel and for us: min(250 ms, ttl / 20).
Duration margin(Ttl ttl);

/// Time between TERM and KILL when the user names none: min(5 s, ttl / 5).
Duration default_grace(Ttl ttl);

/// How long one server may take to connect, log in and answer when the user names nothing: 5 % of the ttl, within 50 ms and 1 s.
Duration default_server_timeout(Ttl ttl);

/// When an unextended lease asked for at `t0` is over for us: t0 + ttl - drift.
Instant deadline(Instant t0, Ttl ttl);

/// How long a server may keep what it grants or extends for us now, by our clock: ttl + drift.
Duration longest_stay(Ttl ttl);

/// How often a lease is extended: ttl / 3.
Duration extend_interval(Ttl ttl);

/// What a ttl must leave room for (R10).
struct TtlDemands {
  std::optional<Duration> server_timeout;  ///< as the user set it; empty: default_server_timeout()
  std::optional<Duration> grace;           ///< as the user set it; empty: default_grace()
};

/// Whether ttl/3 + 3 * server timeout + grace + margin + drift <= ttl.
bool leaves_room(Ttl ttl, const TtlDemands& demands);

/// The smallest ttl, in whole milliseconds, that leaves_room(); nothing when none up to Ttl::max does.
std::optional<Ttl> smallest_ttl(const TtlDemands& demands);

}  // namespace redlock
