#pragma once

#include <cstdint>
#include <optional>

#include "core/types.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// The times that follow from a ttl. Pure arithmetic; the rules are PROTOCOL R1 and R10.

/// The ttl of a lease that is renewed, if its user chose none: `run`, `acquire --while-pid` and
/// `acquire --detach`.
inline constexpr std::chrono::seconds default_ttl{30};

/// How much a server's clock may gain on ours within one ttl: 1 % for different rates, 2 ms for the
/// rounding of expiries.
Duration drift(Ttl ttl);

/// The time between KILL and the end of the validity if the command's stop cost has not been
/// measured: ttl / 20, but at least 50 ms and at most 250 ms.
Duration margin(Ttl ttl);

/// The cost of stopping a command, as measured while it runs.
struct StopCost {
  Duration lateness{};              ///< how late the last timers fired: our own wait for a CPU
  Duration walk{};                  ///< how long it took to find all processes
  std::uint64_t processes = 0;      ///< number of processes of the command
  std::uint64_t private_bytes = 0;  ///< their private memory in RAM, in total

  /// How much more time each process needs than on a CPU of its own, to end as well:
  /// (ran + waited) / ran.
  double contention = 1;

  /// How long a session of the command waits for a CPU. A killed process needs a CPU to end. Zero
  /// if the guards lend the processes a real-time priority.
  Duration turn{};
};

/// The margin for a command with this cost. It is the sum of twice the last delays, since the next
/// ones may be longer, and of the time that the kernel needs to end the processes with their share
/// of the CPU and to free their memory. At least `plain`, the margin(ttl).
Duration needed_margin(Duration plain, const StopCost& cost);

/// Enough for an orderly shutdown; more only keeps a dying command's lock from other clients.
inline constexpr Duration max_default_grace = std::chrono::seconds(5);

/// The default time between TERM and KILL: ttl / 5, at most max_default_grace.
Duration default_grace(Ttl ttl);

/// With a shorter timeout, a scheduling hiccup or one lost packet would look like a dead server;
/// with a longer one, a dead server would delay every client.
inline constexpr Duration min_default_timeout = Milliseconds(50);
inline constexpr Duration max_default_timeout = std::chrono::seconds(1);

/// The default time for one server to accept the connection and the login, and to answer: 5 % of
/// the ttl, within these bounds.
Duration default_server_timeout(Ttl ttl);

/// When a lease requested at `t0` ends for us without an extension: t0 + ttl - drift.
Instant deadline(Instant t0, Ttl ttl);

/// The longest time, by our clock, for which a server may keep a lease that it grants or extends
/// now: ttl + drift.
Duration max_retention(Ttl ttl);

/// How often a lease is extended: ttl / 3.
Duration extend_interval(Ttl ttl);

/// The times that a ttl must be long enough for (R10).
struct TtlDemands {
  std::optional<Duration> server_timeout;  ///< as the user set it; empty: default_server_timeout()
  std::optional<Duration> grace;           ///< as the user set it; empty: default_grace()
  bool supervised = true;                  ///< a process is stopped when the lease is lost
};

/// The shortest lease under which a process can be stopped in time. With a shorter one, the wait
/// for a CPU on a busy machine exceeds the time that it leaves.
inline constexpr Milliseconds min_supervised_ttl{500};

/// Whether ttl/3 + 3 * server timeout + grace + margin + drift <= ttl, and what is supervised has
/// min_supervised_ttl.
bool leaves_room(Ttl ttl, const TtlDemands& demands);

/// The longest margin for which the ttl leaves room: what remains of it after the other parts.
Duration max_margin(Ttl ttl, const TtlDemands& demands);

/// The smallest ttl, in whole milliseconds, for which leaves_room() is true; nullopt if it is false
/// for all up to Ttl::max.
std::optional<Ttl> min_ttl(const TtlDemands& demands);

}  // namespace redlock
