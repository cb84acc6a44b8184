#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/exit_as.hpp"
#include "commands/session.hpp"
#include "core/types.hpp"

namespace redlock::commands {

/// The options of `release KEY` without a lease of KEY.
struct LiftOptions {
  std::vector<Resource> resources;
  std::optional<Fence> only_if{};     ///< lift the hold only if it has this fence
  std::optional<std::string> slot{};  ///< the slot that is on hold, by number or name
};

/// `release KEY` without a lease of KEY: lifts the holds on these keys, or on this slot of them
/// (PROTOCOL F3), one by one.
/// No other lock is touched.
ExitAs lift_holds(Session& session, const LiftOptions& options);

}  // namespace redlock::commands
