#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/vote.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// A place in the queue (PROTOCOL Q1): the smaller is served first, of equal ones the waiter with the smaller id. In milliseconds of the
/// servers' clocks, so that the order is that of arrival.
using Ticket = std::uint64_t;

/// What a round shows of the status, put together from its servers' words.
struct QueueView {
  std::optional<Ticket> next_ticket;  ///< for somebody who queues now; nothing before a quorum has answered
  std::size_t ahead = 0;              ///< how many are before us, on the server with the fewest
  bool queued = false;               ///< a quorum has us in the queue, or had it for us
  std::optional<Duration>
      may_change;  ///< until a quorum of servers may let somebody in without a call: leases end, who was called is passed over
  std::optional<std::size_t> slot;  ///< one that a quorum has free
  bool mute = false;                ///< whoever holds it cannot notify a quorum's waiters when it releases
  bool newer = false;               ///< somebody of a newer version comes first
  bool offered = false;             ///< a quorum may be had, but the first in the queue was notified and comes first
};

/// `statuses[i]`: the word of server i, if it gave one; `granted[i]`: it granted what was asked, and is being given back.
QueueView view_of(const std::vector<const QueueStatus*>& statuses, const std::vector<bool>& granted);

/// How long a waiter may wait for a call before it looks by itself. The first in the queue looks when something may have changed; the second a
/// little later, should the first not be there; who stands further behind looks the more rarely the further. So all of them together cost
/// the servers no more than a few looks a second, however many they are and however short the leases, and a look each for the
/// max_poll_interval (PROTOCOL Q7). Whoever has seen that the lock is offered to another looks when that one's time is over, wherever it
/// stands: a free lock passes over one stopped waiter a second, as long as anybody looks.
Duration until_next_poll(const QueueView& status);

/// The second in the queue looks at least so often where the holder notifies nobody: nobody but itself notices that the first is dead.
inline constexpr Milliseconds second_poll_interval{1500};

/// A key's expiry shows to others up to this much later than its ttl says.
inline constexpr Milliseconds expiry_slack{2};

/// How long a waiter that hears calls stays in the queue without a look (K3), and how long one that does not.
inline constexpr Milliseconds entry_ttl{35'000};
inline constexpr Milliseconds polling_entry_ttl{2000};
inline constexpr Milliseconds max_poll_interval{15'000};
inline constexpr Milliseconds max_unnotified_poll_interval{500};

}  // namespace redlock
