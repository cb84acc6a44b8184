#pragma once

#include <cstdint>
#include <optional>

#include "core/types.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// The times that follow from a ttl. Pure arithmetic; the rules are PROTOCOL R1 and R10.

/// By how much a server's clock may run faster than ours within one ttl: 1 % for the rates, 2 ms for the rounding of expiries.
Duration drift(Ttl ttl);

/// Time kept between KILL and the end of the validity when nothing else is known: ttl / 20, within 50 ms and 250 ms.
Duration margin(Ttl ttl);

/// What it takes to stop a command, as measured while it runs.
struct StopCost {
  Duration lateness{};              ///< how late the last timers fired: what we wait for a CPU
  Duration walk{};                  ///< how long it took to find all processes
  std::uint64_t processes = 0;      ///< of the command
  std::uint64_t private_bytes = 0;  ///< in RAM, of all of them together

  /// How much longer than on a CPU of its own each of them takes for what it does, death included: (ran + waited) / ran.
  double contention = 1;
};

/// The margin that such a command needs: what it took last, twice, as it takes longer on the next occasion, and what the kernel
/// needs to end the processes, with the share of the CPU that they get, and to free their memory. At least `plain`, the margin(ttl).
Duration needed_margin(Duration plain, const StopCost& cost);

/// Enough for what shuts down tidily; more only keeps a dying command's lock from others.
inline constexpr Duration max_default_grace = std::chrono::seconds(5);

/// Time between TERM and KILL when the user names none: ttl / 5, at most max_default_grace.
Duration default_grace(Ttl ttl);

/// Below, a scheduling hiccup or one lost packet looks like a dead server; above, a dead server
/// delays everybody.
inline constexpr Duration min_default_timeout = Milliseconds(50);
inline constexpr Duration max_default_timeout = std::chrono::seconds(1);

/// How long one server may take to connect, log in and answer when the user names nothing: 5 % of
/// the ttl, within these bounds.
Duration default_server_timeout(Ttl ttl);

/// When an unextended lease asked for at `t0` is over for us: t0 + ttl - drift.
Instant deadline(Instant t0, Ttl ttl);

/// How long a server may keep what it grants or extends for us now, by our clock: ttl + drift.
Duration max_stay(Ttl ttl);

/// How often a lease is extended: ttl / 3.
Duration extend_interval(Ttl ttl);

/// What a ttl must leave room for (R10).
struct TtlDemands {
  std::optional<Duration> server_timeout;  ///< as the user set it; empty: default_server_timeout()
  std::optional<Duration> grace;           ///< as the user set it; empty: default_grace()
  bool supervised = true;                  ///< a process is stopped when the lease is lost
};

/// The shortest lease under which a process can be stopped in time: below, the wait for a CPU on a busy machine is longer than all
/// that it leaves room for.
inline constexpr Milliseconds min_supervised_ttl{500};

/// Whether ttl/3 + 3 * server timeout + grace + margin + drift <= ttl, and what is supervised has min_supervised_ttl.
bool leaves_room(Ttl ttl, const TtlDemands& demands);

/// The longest margin that leaves_room(): what the others leave of the ttl.
Duration max_margin(Ttl ttl, const TtlDemands& demands);

/// The smallest ttl, in whole milliseconds, that leaves_room(); nothing when none up to Ttl::max does.
std::optional<Ttl> min_ttl(const TtlDemands& demands);

}  // namespace redlock
