#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/protocol.hpp"
#include "core/vote.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// Whether a bounded queue has room for us, until a round has shown that (PROTOCOL W).
enum class Room {
  unknown,    ///< no bound, or no server says how many wait
  enough,     ///< fewer than the bound are queued besides us, on a quorum
  contended,  ///< others came at the same time, and some of us will leave: look again
  none,       ///< so many come before us on so many servers that no quorum is left
};

/// The queue as a round shows it: combines the statuses of the servers.
struct QueueView {
  std::optional<Ticket> next_ticket;  ///< for a waiter that queues now; nothing before a quorum has
                                      ///< answered
  bool has_largest = false;           ///< a quorum told the largest ticket that it knows
  std::size_t ahead = 0;  ///< number of waiters before us, on the server with the fewest
  bool queued = false;    ///< a quorum has us in the queue, or had until it granted
  std::optional<Duration>
      may_change;  ///< until a quorum of servers may admit a waiter without a notification: leases
                   ///< end, a notified waiter is passed over
  Slots slots;     ///< as many as we take that are free together on a quorum; empty: none are
  bool cannot_publish = false;  ///< a holder cannot notify a quorum's waiters when it releases
  bool newer = false;           ///< a waiter of a newer version comes first
  bool offered = false;  ///< a quorum is free, but the first waiter was notified and comes first
  /// Whose waiter supersedes us: servers know of it, and the others that answered are no quorum.
  std::optional<Owner> superseded_by{};
  Room room = Room::unknown;
  std::size_t others = 0;  ///< number of waiters besides us, on the server with the most; only if
                           ///< the queue is bounded
  /// Whose waiter comes first and takes several slots, while there is room for us, not for it.
  std::optional<Owner> collector{};
};

/// Of what view_of() depends on besides the statuses.
struct QueueWish {
  std::size_t take = 1;                      ///< Mode::take
  std::optional<std::size_t> max_waiting{};  ///< the bound of the queue, if it is bounded
};

/// `statuses[i]`: the status of server i, if it gave one; `granted[i]`: it granted, and that grant
/// is being undone.
QueueView view_of(const std::vector<const QueueStatus*>& statuses, const std::vector<bool>& granted,
                  const QueueWish& wish = {});

/// How long a waiter may wait for a notification before it polls by itself. The first waiter polls
/// when something may have changed; the second a little later, in case the first is not there. The
/// further back a waiter is, the more rarely it polls. So all waiters together cost the servers no
/// more than a few polls a second, however many they are and however short the leases, plus one
/// poll each per max_poll_interval (PROTOCOL Q7). A waiter that knows that the lock is offered to
/// another polls when that one's time ends, whatever its own position. So a free lock passes over
/// one stopped waiter a second, as long as any waiter polls.
Duration until_next_poll(const QueueView& view);

/// The second waiter polls at least this often where a holder is mute: no other process notices
/// that the first is dead.
inline constexpr Milliseconds second_poll_interval{1500};

/// Other clients may see a key up to this much longer than its ttl says.
inline constexpr Milliseconds expiry_slack{2};

/// How long a waiter that is subscribed stays in the queue without a poll (K3), and how long one
/// that is not.
inline constexpr Milliseconds entry_ttl = protocol::idle_life;
inline constexpr Milliseconds polling_entry_ttl{2000};
inline constexpr Milliseconds max_poll_interval{15'000};
inline constexpr Milliseconds max_unnotified_poll_interval{500};

}  // namespace redlock
