#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <vector>

#include "commands/options.hpp"
#include "commands/session.hpp"
#include "engine/waiter.hpp"
#include "output/outcome.hpp"
#include "support/result.hpp"

namespace redlock::commands {

/// The outcome of `command` (`run`, `acquire` or `hold`) after a failed wait.
output::Outcome outcome_of_wait(std::string_view command, const LockOptions& options,
                                const WaitFailure& failed, std::size_t servers);

/// Reports that the locks are granted, with the votes that have arrived so far.
void report_acquired(Session& session, const std::vector<Lease>& leases, Duration waited);

/// Reports that a command ends without its locks, unless another event has reported that.
void report_not_acquired(const Session& session, const output::Outcome& outcome, Duration waited);

/// Waits for the locks, all or none, according to the policy, and reports the progress as events. A
/// wait for a lock that an ancestor of ours keeps until we end would never succeed: it fails with
/// held_around_us, or, with `insists_on_wait`, is reported once and continues.
asio::awaitable<Result<std::shared_ptr<HeldSet>, WaitFailure>> wait_for_locks(
    Session& session, std::vector<AcquireOrder> orders, WaitPolicy policy, bool insists_on_wait);

}  // namespace redlock::commands
