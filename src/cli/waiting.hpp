#pragma once

#include <asio/awaitable.hpp>

#include "cli/session.hpp"
#include "engine/waiter.hpp"
#include "support/result.hpp"

namespace redlock::cli {

/// Waits for the lock as the policy says, and tells the user what it waits for: one line at the start and one a minute.
asio::awaitable<Result<Lease, AttemptFailure>> wait_for_lock(Session& session, AcquireOrder order, WaitPolicy policy);

}  // namespace redlock::cli
