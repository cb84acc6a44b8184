#pragma once

#include <asio/awaitable.hpp>
#include <vector>

#include "core/holds.hpp"
#include "engine/server_set.hpp"

namespace redlock {

/// A hold has no process that renews it. So the clients that meet it keep it on its servers
/// (PROTOCOL F2), and any of them may lift it (F3).

/// Restores the holds that a round shows on a quorum, of the whole lock or of slots, at the servers
/// that answered and lost them. If one of these shows that a hold was lifted, it is lifted at all
/// others instead. `t0`: when the round began. An undo of ours at these servers must have been sent
/// before. Ends within two server timeouts, and at once if the interrupt is raised; what it cannot
/// do, the next client does.
asio::awaitable<void> keep_holds(ServerSet& server_set, Resource resource,
                                 std::vector<ShownLock> shown, Instant t0, Interrupt& interrupt);

struct LiftResult {
  bool lifted = false;  ///< a quorum no longer has it as a hold
  std::vector<ServerFault> faults{};
};

/// Lifts a hold at every server, also where it is not: there it must not return. Its users keep the
/// lease.
asio::awaitable<LiftResult> lift_hold(ServerSet& server_set, Resource resource, FoundHold hold);

}  // namespace redlock
