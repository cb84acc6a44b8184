#pragma once

#include <optional>

#include "cli/option_types.hpp"
#include "cli/settings.hpp"
#include "core/validity.hpp"
#include "run/options.hpp"

namespace redlock::cli {

/// --max-hold; nothing when there is no limit.
std::optional<Duration> read_max_hold(const Settings& settings);

/// --grace, --stop-signal, --on-lost, --descendants, --signal-to and --max-hold.
child::StopPlan read_stop_plan(const Settings& settings, Ttl ttl, const TtlDemands& demands);

/// Whether the caller gave us this descriptor to write to.
bool is_given_for_writing(int fd);

/// Of an option that takes the number of a descriptor to write to. Throws CommandError unless the
/// caller gave us that.
std::optional<int> read_descriptor(const Settings& settings, const Option<NumberType>& option);

/// Throws CommandError, also when the command cannot be found (127) or executed (126): these errors
/// are reported before the wait.
run::RunOptions read_run_options(const Settings& settings);

}  // namespace redlock::cli
