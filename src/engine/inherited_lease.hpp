#pragma once

#include <asio/awaitable.hpp>
#include <optional>
#include <variant>

#include "engine/attempt.hpp"
#include "engine/lease_keeper.hpp"

namespace redlock {

/// What came of asking for the enclosing lease.
struct Inheritance {
  std::optional<Lease> lease;  ///< inherited if its guard keeps it, adopted if nobody does
  bool too_weak = false;       ///< it is shared, and the order wants more: it might wait for somebody who waits for us
  bool too_short = false;      ///< its guard keeps it, but not long enough for the order: to wait for it would be to wait for ourselves
};

/// Asks once whether the lease stands that encloses the order; a quorum must show it. One of a `run` whose guard is not known is none: a
/// process that merely inherited the variable must not take it for its own (PROTOCOL M3).
asio::awaitable<Inheritance> inherit(ServerSet& server_set, const AcquireOrder& order);

/// Asks once whether a lease stands that somebody else keeps; told as a round of extending would tell it.
asio::awaitable<ExtendResult> check_lease(ServerSet& server_set, Resource resource, LeaseId id);

/// Looks every ttl/3, or sooner when it ends sooner, whether a inherited lease still stands, and tells it as a LeaseKeeper does. Its
/// deadline is the end that a quorum of servers shows at least, less the drift, from before the question.
class InheritedLease {
 public:
  /// `lease` is as inherit() gave it.
  InheritedLease(ServerSet& server_set, const Lease& lease);

  asio::awaitable<std::variant<LeaseExtended, LeaseInTrouble, LeaseEnded>> next();

 private:
  [[nodiscard]] Instant poll_after(Instant last) const;

  ServerSet& server_set_;
  Resource resource_;
  LeaseId id_;
  Ttl ttl_;
  Instant deadline_;
  Instant next_poll_;
  unsigned failures_ = 0;  ///< in a row
};

}  // namespace redlock
