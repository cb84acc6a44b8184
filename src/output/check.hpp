#pragma once

#include <optional>
#include <string>

#include "core/decision.hpp"

namespace redlock::output {

/// The limits of `status --max-age` and `status --max-held`; nullopt: not checked.
struct CheckLimits {
  std::optional<Duration> max_age;   ///< since the last success started
  std::optional<Duration> max_held;  ///< by one command
};

struct CheckResult {
  bool within;       ///< no limit is exceeded
  std::string text;  ///< one clause per limit, for people
};

/// Checks a lock against the limits. Without a quorum of answers no limit is met. Pure.
CheckResult check(const Inspection& inspection, const CheckLimits& limits);

/// How long a command has held the lock. For a shared lock this is the age of the oldest share, or
/// the time since the lock became shared if the servers list only some of the shares. Zero if no
/// command holds it: the lock is free, held on less than a quorum, or only kept by --min-hold.
/// nullopt if unknown.
std::optional<Duration> held_for(const Inspection& inspection);

}  // namespace redlock::output
