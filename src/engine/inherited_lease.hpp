#pragma once

#include <asio/awaitable.hpp>
#include <optional>
#include <vector>

#include "engine/attempt.hpp"
#include "engine/held_lease.hpp"

namespace redlock {

/// The result of asking for the parent lease.
struct Inheritance {
  std::optional<Lease> lease;  ///< we are registered as its user if the order's owner renews it
  bool too_weak = false;       ///< it is a share, and the order needs more: we might wait for a
                               ///< process that waits for us
  bool lost = false;           ///< a quorum does not have it, or refuses us: it will not come back
  bool unanswered = false;     ///< no quorum answered in time: the lease may still be valid
  std::vector<ServerFault> faults{};  ///< if unanswered: of the servers that did not answer
};

/// Asks once whether the parent lease of the order is still valid: a quorum must have it. The lease
/// of a `run` of which no guard is an ancestor does not count, as a process that merely inherited
/// the variable must not use the lease as its own (PROTOCOL M3). A registration as its user counts
/// if a quorum has it, and is undone otherwise (PROTOCOL U1).
asio::awaitable<Inheritance> inherit(ServerSet& server_set, AcquireOrder order);

/// Whether inherit() would find a parent lease that is still valid. Registers nothing.
asio::awaitable<bool> has_parent_lease(ServerSet& server_set, const AcquireOrder& order);

/// Asks once whether a lease that another process keeps is still valid. The result has the form of
/// an extend round. Its deadline counts from before the question: the remaining time that a quorum
/// of servers guarantees, less the drift. Decided at `end` at the latest.
asio::awaitable<ExtendResult> check_lease(ServerSet& server_set, Resource resource, LeaseId id,
                                          Instant end);

}  // namespace redlock
