#pragma once

#include <string>

#include "core/vote.hpp"
#include "engine/dismissal.hpp"

namespace redlock::output {

/// Requests as clauses for people: to stop a run, to send waiters away, to break a lock. The
/// functions are pure. Text from servers is returned escaped for the terminal.

/// `alice@web1 ("roll back")`.
std::string request_text(const StopRequest& request);

/// `asked to stop by alice@web1 ("roll back")`, or `asked to stop for a newer run of …`.
std::string asked_text(const StopRequest& request);

/// `stopped at the request of alice@web1 ("roll back")`, or `stopped for a newer run of …`.
std::string stopped_text(const StopRequest& request);

/// `alice@web1 broke it with `release --force` ("roll back")`: the breaker's note is the reason.
std::string broke_text(const Owner& breaker);

/// `2 waiters sent away; 1 not reached, which gives up when it runs again: alice@web1 (run pid 4)`.
std::string sent_away_text(const SentAway& waiters);

}  // namespace redlock::output
