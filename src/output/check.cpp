#include "output/check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/last_runs.hpp"
#include "output/lock_text.hpp"
#include "output/past_runs.hpp"
#include "support/duration.hpp"

namespace redlock::output {
namespace {

/// Whether no command runs under the lease: it has ended, or still waits for another key.
bool is_idle(const Holder& holder) {
  return (holder.owner && holder.owner->finished) || holder.waits_for;
}

/// Applies the rule of --once-per, so that both agree on what a recent success is.
CheckResult check_age(const Inspection& inspection, Duration max_age) {
  const auto recent = fresh_success(inspection.runs_by_server, max_age);
  LastRuns runs = inspection.runs;
  if (recent) runs.success = recent;
  return {recent.has_value(), check_text(runs, max_age, recent.has_value())};
}

CheckResult check_held(const Inspection& inspection, Duration max_held) {
  const std::string text = inspection_text(inspection);
  const auto held = held_for(inspection);
  if (!held) return {false, text + "; how long is unknown"};
  const bool within = *held <= max_held;
  if (*held == Duration::zero()) return {within, text};
  const bool is_share = inspection.holder->shared;
  return {within,
          fmt::format("{}; {}{} {}", text,
                      is_share ? fmt::format("a share for {}, ", format_duration(*held)) : "",
                      within ? "not longer than" : "longer than", format_duration(max_held))};
}

}  // namespace

std::optional<Duration> held_for(const Inspection& inspection) {
  if (inspection.state == InspectState::unavailable) return std::nullopt;
  if (inspection.state != InspectState::held || is_idle(*inspection.holder))
    return Duration::zero();
  const LockParties& parties = inspection.parties;
  std::optional<Duration> longest = inspection.holder->age;
  if (!inspection.holder->shared || parties.first_shares.size() != parties.shares) return longest;
  longest = Duration::zero();
  for (const Share& share : parties.first_shares) {
    if (is_idle(share.holder)) continue;
    if (!share.holder.age) return inspection.holder->age;
    longest = std::max(*longest, *share.holder.age);
  }
  return longest;
}

CheckResult check(const Inspection& inspection, const CheckLimits& limits) {
  if (inspection.state == InspectState::unavailable) return {false, inspection_text(inspection)};
  CheckResult all{true, {}};
  const auto add = [&all](const CheckResult& one) {
    all.within = all.within && one.within;
    all.text += (all.text.empty() ? "" : "; ") + one.text;
  };
  if (limits.max_age) add(check_age(inspection, *limits.max_age));
  if (limits.max_held) add(check_held(inspection, *limits.max_held));
  return all;
}

}  // namespace redlock::output
