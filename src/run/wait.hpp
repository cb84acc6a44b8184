#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <vector>

#include "engine/waiter.hpp"
#include "output/outcome.hpp"
#include "run/options.hpp"
#include "run/session.hpp"
#include "support/result.hpp"

namespace redlock::run {

/// How a failed wait ends the command, `run` or `acquire`.
output::Outcome outcome_of_wait(std::string_view command, const LockOptions& options,
                                const WaitFailure& failed, std::size_t servers);

/// Reports that the locks are granted, with the votes that are known so far.
void report_acquired(Session& session, const std::vector<Lease>& leases, Duration waited);

/// Reports that a command ends without its locks, unless another event has told so.
void report_not_acquired(const Session& session, const output::Outcome& outcome, Duration waited);

/// Waits for the locks, all or none, as the policy says, and reports the wait by events.
/// A wait for a lock that an ancestor of ours holds until we end would never end: it fails with
/// held_around_us, unless the user insists on waiting; then it is told in one line.
asio::awaitable<Result<std::shared_ptr<HeldSet>, WaitFailure>> wait_for_locks(
    Session& session, std::vector<AcquireOrder> orders, WaitPolicy policy, bool insists_on_wait);

}  // namespace redlock::run
