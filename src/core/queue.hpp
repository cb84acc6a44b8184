#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/protocol.hpp"
#include "core/vote.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// Whether a bounded queue (--max-waiting) has room for us (PROTOCOL Q10). Once a round has
/// returned `enough`, later rounds no longer ask.
enum class Room {
  unknown,    ///< the queue has no bound, or no server reports how many wait
  enough,     ///< on a quorum, fewer waiters than the bound are queued besides us
  contended,  ///< others came at the same time, and some of us will leave: poll again
  none,       ///< on so many servers the bound is reached before us that no quorum is left
};

/// The queue as a round shows it: combines the statuses of the servers.
struct QueueView {
  std::optional<Ticket> next_ticket;  ///< for a waiter that joins now; nullopt until a quorum has
                                      ///< answered
  bool has_largest = false;           ///< a quorum reported the largest ticket that it knows
  std::size_t ahead = 0;  ///< number of waiters before us, on the server with the fewest
  bool queued = false;    ///< a quorum has us in the queue, or had until it granted
  std::optional<Duration>
      may_change;  ///< time until a quorum may admit a waiter without a notification, because
                   ///< leases end or a notified waiter is passed over
  Slots slots;     ///< slots that are free together on a quorum, as many as we take; empty if there
                   ///< are too few
  TakenSlots taken_slots{};     ///< of those that we want; a slot that no quorum has free is taken
  bool cannot_publish = false;  ///< a holder cannot notify a quorum's waiters when it releases
  bool newer = false;           ///< a waiter of a newer version comes first
  bool offered = false;  ///< a quorum is free, but the first waiter was notified and comes first
  bool watches = false;  ///< we are to notice if the first waiter dies, which may not enter and
                         ///< keeps others out
  /// The owner of a newer waiter that supersedes us, once so many servers report it that those that
  /// do not are no quorum.
  std::optional<Owner> superseded_by{};
  /// Who sent us away, with `stop --waiting`, once those that do not report it are no quorum.
  std::optional<StopRequest> dismissed_by{};
  Room room = Room::unknown;
  std::size_t others = 0;  ///< number of waiters besides us, on the server with the most; only if
                           ///< the queue is bounded
  /// The owner of the first waiter, if not all of the slots that it takes are free, although there
  /// are enough for us.
  std::optional<Owner> collector{};
};

/// The ticket of a waiter that joins now (PROTOCOL Q1): the median of the servers' clocks, or more
/// than every ticket that a server knows. `times`: at least one.
Ticket next_ticket(std::vector<Milliseconds> times, Ticket largest_known);

/// What the caller needs of the queue.
struct QueueDemands {
  std::size_t take = 1;                      ///< Mode::take
  std::optional<std::size_t> max_waiting{};  ///< the bound of the queue, if it is bounded
};

/// `statuses[i]`: the status that server i reported; null if it reported none. `granted[i]`: server
/// i granted the lock, and that grant is being undone.
QueueView view_of(const std::vector<const QueueStatus*>& statuses, const std::vector<bool>& granted,
                  const QueueDemands& demands = {});

/// How long a waiter waits for a notification before it polls (PROTOCOL Q7).
///
/// The first waiter polls when something may have changed; the second a little later, in case the
/// first has died. The further back a waiter is, the more rarely it polls. So all waiters together
/// cost the servers a few polls a second, however many they are and however short the leases, plus
/// one poll each per max_poll_interval.
///
/// A waiter that watches over the first one polls as the second does, whatever its own position: at
/// most two do.
///
/// A waiter that knows that the lock is offered to another waiter polls when that waiter's time to
/// answer has passed, whatever its own position. So a free lock passes over one stopped waiter a
/// second, as long as any waiter polls.
Duration until_next_poll(const QueueView& view);

/// The second waiter polls at least this often if a holder cannot publish: no other process would
/// notice that the first waiter is dead.
inline constexpr Milliseconds second_poll_interval{1500};

/// Other clients may see a key for up to this much longer than its ttl.
inline constexpr Milliseconds expiry_slack{2};

/// How long a waiter stays in the queue without a poll (K3): entry_ttl if it is subscribed, and
/// otherwise polling_entry_ttl. Each polls often enough to keep its entry.
inline constexpr Milliseconds entry_ttl = protocol::idle_life;
inline constexpr Milliseconds polling_entry_ttl{2000};
inline constexpr Milliseconds max_poll_interval{15'000};
inline constexpr Milliseconds max_unnotified_poll_interval{500};

}  // namespace redlock
