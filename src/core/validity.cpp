#include "core/validity.hpp"

#include <algorithm>
#include <chrono>

namespace redlock {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Servers keep time in whole milliseconds, and so do we at the wire: one for each rounding.
constexpr Duration expiry_rounding = milliseconds(2);

/// Killing and reaping a large tree takes this long on a loaded machine; a short lease cannot afford more than a twentieth.
constexpr Duration longest_margin = milliseconds(250);

/// Enough for what shuts down tidily; longer only keeps a dying command's lock from others.
constexpr Duration longest_default_grace = seconds(5);

/// Below, a scheduling hiccup or one lost packet looks like a dead server; above, a dead server delays everybody.
constexpr Duration shortest_default_timeout = milliseconds(50);
constexpr Duration longest_default_timeout = seconds(1);

/// Rounds of server timeouts that a ttl has room for after the first extend is due (R10).
constexpr int timeouts_to_fit = 3;

Ttl ttl_of(Milliseconds length) {
  return Ttl::from(length).value();
}

}  // namespace

Duration drift(Ttl ttl) {
  return Duration(ttl.length()) / 100 + expiry_rounding;
}

Duration margin(Ttl ttl) {
  return std::min(longest_margin, Duration(ttl.length()) / 20);
}

Duration default_grace(Ttl ttl) {
  return std::min(longest_default_grace, Duration(ttl.length()) / 5);
}

Duration default_server_timeout(Ttl ttl) {
  return std::clamp(Duration(ttl.length()) / 20, shortest_default_timeout, longest_default_timeout);
}

Instant deadline(Instant t0, Ttl ttl) {
  return t0 + ttl.length() - drift(ttl);
}

Duration longest_stay(Ttl ttl) {
  return ttl.length() + drift(ttl);
}

Duration extend_interval(Ttl ttl) {
  return Duration(ttl.length()) / 3;
}

bool leaves_room(Ttl ttl, const TtlDemands& demands) {
  const Duration timeout = demands.server_timeout.value_or(default_server_timeout(ttl));
  const Duration grace = demands.grace.value_or(default_grace(ttl));
  // What is longer than the ttl by itself cannot fit, and might overflow the sum.
  if (timeout > ttl.length() || grace > ttl.length()) return false;
  return extend_interval(ttl) + timeouts_to_fit * timeout + grace + margin(ttl) + drift(ttl) <= ttl.length();
}

std::optional<Ttl> smallest_ttl(const TtlDemands& demands) {
  if (!leaves_room(ttl_of(Ttl::max), demands)) return std::nullopt;
  // With every millisecond of ttl the demands grow by three quarters of one at most, so what fits once fits ever after.
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
