#pragma once

#include <cstdint>
#include <optional>

#include "core/types.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// The times that follow from a ttl. Pure arithmetic; the rules are PROTOCOL R1 and R10.

/// How much faster than ours a server's clock may run within one ttl: 1 % for the rates, 2 ms for
/// the rounding of expiries.
Duration drift(Ttl ttl);

/// The time between KILL and the end of the validity when nothing else is known: ttl / 20, within
/// 50 ms and 250 ms.
Duration margin(Ttl ttl);

/// The cost of stopping a command, as measured while it runs.
struct StopCost {
  Duration lateness{};              ///< how late the last timers fired: our own wait for a CPU
  Duration walk{};                  ///< how long it took to find all processes
  std::uint64_t processes = 0;      ///< of the command
  std::uint64_t private_bytes = 0;  ///< in RAM, of all of them together

  /// How many times as long as on a CPU of its own each of them takes for what it does, death
  /// included: (ran + waited) / ran.
  double contention = 1;

  /// How long a session of the command waits before one of its processes gets a CPU, as what is
  /// killed has to get one to end. Zero where the guards lend it a real-time priority.
  Duration turn{};
};

/// The margin that such a command needs: twice its last delays, since they may be longer next time;
/// and the time in which the kernel ends the processes, with their share of the CPU, and frees
/// their memory. At least `plain`, the margin(ttl).
Duration needed_margin(Duration plain, const StopCost& cost);

/// Enough for an orderly shutdown; more only keeps a dying command's lock from other clients.
inline constexpr Duration max_default_grace = std::chrono::seconds(5);

/// Time between TERM and KILL when the user names none: ttl / 5, at most max_default_grace.
Duration default_grace(Ttl ttl);

/// Below, a scheduling hiccup or one lost packet looks like a dead server; above, a dead server
/// delays every client.
inline constexpr Duration min_default_timeout = Milliseconds(50);
inline constexpr Duration max_default_timeout = std::chrono::seconds(1);

/// How long one server may take to connect, log in and answer when the user sets nothing: 5 % of
/// the ttl, within these bounds.
Duration default_server_timeout(Ttl ttl);

/// When a lease requested at `t0` ends for us without an extension: t0 + ttl - drift.
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

/// The shortest lease under which a process can be stopped in time. With a shorter one, the wait
/// for a CPU on a busy machine exceeds the time that it leaves.
inline constexpr Milliseconds min_supervised_ttl{500};

/// Whether ttl/3 + 3 * server timeout + grace + margin + drift <= ttl, and what is supervised has
/// min_supervised_ttl.
bool leaves_room(Ttl ttl, const TtlDemands& demands);

/// The longest margin that leaves_room(): what the other parts leave of the ttl.
Duration max_margin(Ttl ttl, const TtlDemands& demands);

/// The smallest ttl, in whole milliseconds, that leaves_room(); nothing when none up to Ttl::max
/// does.
std::optional<Ttl> min_ttl(const TtlDemands& demands);

}  // namespace redlock
