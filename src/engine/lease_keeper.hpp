#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "core/lease.hpp"
#include "engine/held_lease.hpp"

namespace redlock {

/// A quorum confirmed the lease.
struct LeaseExtended {
  Instant deadline;    ///< the new one
  bool after_trouble;  ///< rounds before this one failed
};

/// No quorum answered in a round. Reported for every such round; the lease is valid until its
/// deadline all the same.
struct LeaseInTrouble {
  std::vector<ServerFault> faults;
  bool first;  ///< the first after a success
};

/// The lease has ended. Final.
struct LeaseEnded {
  LeaseState state;                 ///< lost or expired
  std::optional<NotOurs> not_ours;  ///< if lost: the answer of one of the servers
};

/// Keeps a lease alive: extends it every ttl/3, retries a failed round until the deadline, and
/// reports the end of the lease (PROTOCOL R4). When a server ends its connection, the lease is
/// extended at once: another master may have taken its place, with an older expiry of the lease.
/// An inherited lease is not extended; the keeper checks every ttl/3, or sooner if the lease ends
/// sooner, that another process still keeps it.
///
///     LeaseKeeper keeper(…);
///     for (;;) { event = co_await keeper.next(); … until LeaseEnded, or until the caller stops
///     asking }
///
/// Only what a quorum confirmed moves the deadline. The new deadline counts from the time of the
/// question, never from that of the reply, so an answer that comes too late for its round counts as
/// well.
class LeaseKeeper {
 public:
  /// `lease` is as granted or inherited.
  LeaseKeeper(ServerSet& server_set, const Lease& lease);

  asio::awaitable<std::variant<LeaseExtended, LeaseInTrouble, LeaseEnded>> next();

  [[nodiscard]] Instant deadline() const noexcept { return life_.deadline(); }

  /// When the next round begins, unless a server ends its connection before.
  [[nodiscard]] Instant next_round() const noexcept { return next_round_; }

  /// The lease, for rounds in addition to the keeper's; null: another process keeps the lease.
  [[nodiscard]] HeldLease* held() noexcept { return held_ ? &*held_ : nullptr; }

 private:
  /// Waits until the next round is due.
  asio::awaitable<void> wait();
  asio::awaitable<ExtendResult> ask();
  [[nodiscard]] Instant round_after(Instant t0) const;
  /// The deadline after late answers of a quorum, if it is later than deadline().
  [[nodiscard]] std::optional<Instant> late_deadline() const;
  /// The lease is held now, and until then.
  LeaseExtended extended(Instant until, bool after_trouble);

  ServerSet& server_set_;
  Resource resource_;
  LeaseId id_;
  Ttl ttl_;
  std::optional<HeldLease> held_;
  LeaseLife life_;
  std::shared_ptr<Event> wake_;  ///< notified when a server ends its connection or answers late
  Instant next_round_;
  Instant last_round_;
  unsigned failures_ = 0;  ///< in a row
};

}  // namespace redlock
