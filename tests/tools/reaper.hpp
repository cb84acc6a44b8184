#pragma once

#include <chrono>
#include <functional>

namespace redlock::testing {

/// What it means when descendants still run a moment after the body has ended.
enum class Leftovers {
  failure,   ///< they are named on stderr and killed, and the result is a failure
  expected,  ///< they are killed at once
};

/// Runs `body` in a child process and then sees to it that nothing that descends from it is left,
/// whatever became of the body: this process becomes a subreaper. Returns what the body returned,
/// or 128 + the signal that it died of; 124 when it took longer than `limit` (zero: no limit) and
/// was killed; 1 for leftovers that are a failure. HUP, INT and TERM kill everything, too: 128 +
/// signal. This process must have no other children.
int run_and_reap(const std::function<int()>& body, std::chrono::seconds limit, Leftovers leftovers);

}  // namespace redlock::testing
