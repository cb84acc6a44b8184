#pragma once

#include <optional>
#include <vector>

#include "commands/exit_as.hpp"
#include "commands/session.hpp"
#include "core/lease_handle.hpp"
#include "core/vote.hpp"

namespace redlock::commands {

/// The options of `release --force`.
struct BreakOptions {
  std::vector<Resource> resources;
  std::optional<Fence> only_if;       ///< break the lock only if it has this fence
  Owner breaker;                      ///< the user who breaks the lock; the note is the reason
  bool and_foreign;                   ///< also break a key that is not a lock of redlock-cli
  std::optional<std::string> slot{};  ///< break only the lease in this slot, by number or name
};

/// `release` of our own lease, except where it is inherited.
ExitAs release(Session& session, const LeaseHandle& lease);

/// `release --force`: breaks locks that other processes hold, one by one.
ExitAs break_locks(Session& session, const BreakOptions& options);

}  // namespace redlock::commands
