#pragma once

#include <asio/awaitable.hpp>
#include <vector>

#include "engine/server_set.hpp"

namespace redlock {

/// The waiters that were to be sent away.
struct SentAway {
  std::size_t number = 0;                ///< that have left the queue
  std::size_t unreached = 0;             ///< that have not: they give up when they run again
  std::vector<Owner> first_unreached{};  ///< of many, only the first few
};

/// What came of it.
struct Dismissal {
  bool confirmed = false;  ///< a quorum remembers it, so that none of them is granted the lock
  SentAway waiters{};
  std::vector<ServerFault> faults{};
};

/// Sends away all who wait for the lock by now (PROTOCOL Q12), and waits until they have left the
/// queue, or for two seconds if some do not answer.
asio::awaitable<Dismissal> dismiss_waiters(ServerSet& server_set, Resource resource,
                                           StopRequest request);

}  // namespace redlock
