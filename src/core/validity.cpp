#include "core/validity.hpp"

#include <algorithm>
#include <chrono>

namespace redlock {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Servers keep time in whole milliseconds, and the wire carries whole milliseconds: one for each
/// rounding.
constexpr Duration expiry_rounding = milliseconds(2);

/// The maximum is the time that it takes to kill and reap an ordinary process tree on a loaded
/// machine. A short lease can only afford a twentieth of its ttl. The minimum is 50 ms, as the wait
/// for a CPU alone may be that long (at a ttl of 100 ms, six of six commands beside busy loops died
/// too late).
constexpr Duration max_plain_margin = milliseconds(250);
constexpr Duration min_margin = milliseconds(50);

/// The time that the kernel needs to end a process, and to free a GiB in pages of 4 KiB: twice the
/// times measured on one CPU of a cloud machine (docs/decisions/load.md).
constexpr Duration time_per_process = std::chrono::microseconds(200);

/// The CPU time that a killed process needs to end after a wait for a CPU, with caches that other
/// processes have filled meanwhile (100 µs on an idle machine).
constexpr Duration time_to_end = std::chrono::microseconds(800);
constexpr Duration time_per_gibibyte = milliseconds(200);
constexpr int gibibyte_shift = 30;
constexpr int mebibyte_shift = 20;

/// The safety factor on measured delays: the next one may be longer.
constexpr int measured_factor = 2;

/// The number of server timeouts that a ttl must have room for after the first extend is due (R10).
constexpr int timeouts_to_fit = 3;

Ttl ttl_of(Milliseconds length) {
  return Ttl::from(length).value();
}

}  // namespace

Duration drift(Ttl ttl) {
  return Duration(ttl.length()) / 100 + expiry_rounding;
}

Duration margin(Ttl ttl) {
  return std::clamp(Duration(ttl.length()) / 20, min_margin, max_plain_margin);
}

Duration needed_margin(Duration plain, const StopCost& cost) {
  const auto mebibytes = static_cast<std::int64_t>(cost.private_bytes >> mebibyte_shift);
  constexpr std::int64_t mebibytes_per_gibibyte = std::int64_t{1}
                                                  << (gibibyte_shift - mebibyte_shift);
  return plain + measured_factor * (cost.lateness + cost.walk + cost.turn) +
         static_cast<std::int64_t>(cost.processes) * time_per_process +
         std::chrono::duration_cast<Duration>((cost.contention - 1) * time_to_end) +
         mebibytes * time_per_gibibyte / mebibytes_per_gibibyte;
}

Duration default_grace(Ttl ttl) {
  return std::min(max_default_grace, Duration(ttl.length()) / 5);
}

Duration default_server_timeout(Ttl ttl) {
  return std::clamp(Duration(ttl.length()) / 20, min_default_timeout, max_default_timeout);
}

Instant deadline(Instant t0, Ttl ttl) {
  return t0 + ttl.length() - drift(ttl);
}

Duration max_retention(Ttl ttl) {
  return ttl.length() + drift(ttl);
}

Duration extend_interval(Ttl ttl) {
  return Duration(ttl.length()) / 3;
}

Duration max_margin(Ttl ttl, const TtlDemands& demands) {
  const Duration timeout = demands.server_timeout.value_or(default_server_timeout(ttl));
  const Duration grace = demands.grace.value_or(default_grace(ttl));
  // A part longer than the ttl cannot fit, and might overflow the sum.
  if (timeout > ttl.length() || grace > ttl.length()) return Duration::zero();
  return ttl.length() - extend_interval(ttl) - timeouts_to_fit * timeout - grace - drift(ttl);
}

bool leaves_room(Ttl ttl, const TtlDemands& demands) {
  if (demands.supervised && ttl.length() < min_supervised_ttl) return false;
  return margin(ttl) <= max_margin(ttl, demands);
}

std::optional<Ttl> min_ttl(const TtlDemands& demands) {
  if (!leaves_room(ttl_of(Ttl::max), demands)) return std::nullopt;
  // For each further millisecond of ttl, the demands grow by at most three quarters of one. So if a
  // ttl fits, all longer ones fit, and bisection finds the shortest.
  Milliseconds low(1);
  Milliseconds high = Ttl::max;
  while (low < high) {
    const Milliseconds middle = low + (high - low) / 2;
    if (leaves_room(ttl_of(middle), demands)) {
      high = middle;
    } else {
      low = middle + Milliseconds(1);
    }
  }
  return ttl_of(low);
}

}  // namespace redlock
