#pragma once

#include <optional>

#include "cli/option_types.hpp"
#include "cli/settings.hpp"
#include "commands/options.hpp"
#include "core/validity.hpp"

namespace redlock::cli {

/// --max-hold; nullopt if there is no limit.
std::optional<Duration> read_max_hold(const Settings& settings);

/// Reads how a guard is to stop the command.
StopPlan read_stop_plan(const Settings& settings, Ttl ttl, const TtlDemands& demands);

/// Whether this process inherited the descriptor from its caller, open for writing.
bool is_given_for_writing(int fd);

/// The value of an option that names a descriptor to write to; nullopt if it is not set. Throws
/// CommandError unless is_given_for_writing().
std::optional<int> read_descriptor(const Settings& settings, const Option<NumberType>& option);

/// Reads all options of `run`. Throws CommandError, also if the command cannot be found (127) or
/// executed (126), so that these errors are reported before the wait.
commands::RunOptions read_run_options(const Settings& settings);

}  // namespace redlock::cli
