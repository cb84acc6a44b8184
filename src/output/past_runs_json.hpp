#pragma once

#include "core/vote.hpp"
#include "output/json_parts.hpp"

namespace redlock::output {

/// A recorded run.
Json past_run_json(const PastRun& run);

/// Adds "last", "last_success" and "skips" where they are known.
void set_runs(Json& json, const LastRuns& runs);

}  // namespace redlock::output
