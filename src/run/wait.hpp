#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <vector>

#include "run/session.hpp"
#include "engine/set_waiter.hpp"
#include "support/result.hpp"

namespace redlock::run {

/// What to add to "busy" where a wait has come to its end: `; waited for 10s (--wait)`, or nothing where there was none.
std::string end_of_wait_text(const WaitPolicy& policy);

/// Waits for the locks, all or none, as the policy says, and tells the user what it waits for: on a terminal in one line that is drawn over
/// itself, elsewhere in one line at the start and one a minute. `job_group`: the process group that the terminal knows us by.
asio::awaitable<Result<std::shared_ptr<HeldSet>, SetFailure>> wait_for_locks(Session& session, std::vector<AcquireOrder> orders,
                                                                             WaitPolicy policy, pid_t job_group);

}  // namespace redlock::run
