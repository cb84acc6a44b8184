#pragma once

#include <optional>
#include <string>

#include "core/decision.hpp"

namespace redlock::output {

/// What `status --max-age` and `status --max-held` check of a lock.
struct CheckLimits {
  std::optional<Duration> max_age;   ///< of the last success
  std::optional<Duration> max_held;  ///< by one command
};

struct CheckResult {
  bool within;       ///< all limits
  std::string text;  ///< one clause for each limit, for people
};

/// Checks what a quorum said; where none did, nothing is within. Pure.
CheckResult check(const Inspection& inspection, const CheckLimits& limits);

/// How long a command has held the lock. Of several shares the oldest; of more than a server shows,
/// since when it is shared. Zero: no command holds it, also where --min-hold keeps it, or less than
/// a quorum of servers shows it. Nothing: it is not known.
std::optional<Duration> held_for(const Inspection& inspection);

}  // namespace redlock::output
