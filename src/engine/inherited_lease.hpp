#pragma once

#include <asio/awaitable.hpp>
#include <optional>
#include <vector>

#include "engine/attempt.hpp"
#include "engine/held_lease.hpp"

namespace redlock {

/// The result of asking for the parent lease.
struct Inheritance {
  std::optional<Lease> lease;  ///< inherited if its guard keeps it, taken over from the parent if
                               ///< no process does
  bool too_weak = false;       ///< it is shared, and the order wants more: we might wait for a
                               ///< process that waits for us
  bool too_short = false;      ///< its guard keeps it, but not long enough for the order: we would
                               ///< wait for ourselves
  bool unanswered = false;     ///< no quorum answered: it may well stand
  std::vector<ServerFault> faults{};  ///< of the servers that did not answer, if unanswered
};

/// Asks once whether the parent lease of the order stands; a quorum must show it. A lease of a
/// `run` whose guard is unknown does not count: a process that merely inherited the variable must
/// not use it as its own (PROTOCOL M3).
asio::awaitable<Inheritance> inherit(ServerSet& server_set, const AcquireOrder& order);

/// Asks once whether a lease that another process keeps still stands, and reports that like a round
/// of extending. The deadline is the earliest end that a quorum of servers guarantees, less the
/// drift, counted from before the question.
asio::awaitable<ExtendResult> check_lease(ServerSet& server_set, Resource resource, LeaseId id);

}  // namespace redlock
