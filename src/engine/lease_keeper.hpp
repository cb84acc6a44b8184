#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <variant>

#include "engine/held_lease.hpp"

namespace redlock {

/// A quorum extended the lease.
struct LeaseExtended {
  Instant deadline;    ///< the new one
  bool after_trouble;  ///< rounds before this one failed
};

/// A round found no quorum of answers. Reported for every such round; the lease still stands until
/// its deadline.
struct LeaseInTrouble {
  std::vector<ServerFault> faults;
  bool first;  ///< the first after a success
};

/// The lease has ended. Final.
struct LeaseEnded {
  LeaseState state;                 ///< lost or expired
  std::optional<NotOurs> not_ours;  ///< for lost: what a server said
};

/// Keeps a lease alive: extends it every ttl/3, retries a failed round until the deadline, and
/// reports the end of the lease (PROTOCOL R4). When a server ends its connection, the lease is
/// extended at once: another master may have taken its place, and show less of the lease's time.
///
///     LeaseKeeper keeper(…);
///     for (;;) { event = co_await keeper.next(); … until LeaseEnded, or until the caller stops
///     asking }
///
/// Only a round that a quorum confirmed moves the deadline. The new deadline counts from the time
/// of the question, never from that of the reply.
class LeaseKeeper {
 public:
  /// `held` must outlive the keeper; `lease` is as granted.
  LeaseKeeper(ServerSet& server_set, HeldLease& held, const Lease& lease);

  asio::awaitable<std::variant<LeaseExtended, LeaseInTrouble, LeaseEnded>> next();

 private:
  /// Until the next round is due.
  asio::awaitable<void> wait();

  ServerSet& server_set_;
  HeldLease& held_;
  Ttl ttl_;
  LeaseLife life_;
  std::shared_ptr<Event> disconnected_;
  Instant next_round_;
  Instant last_round_;
  unsigned failures_ = 0;  ///< in a row
};

}  // namespace redlock
