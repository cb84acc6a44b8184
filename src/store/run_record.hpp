#pragma once

#include <string>
#include <string_view>

#include "core/vote.hpp"

namespace redlock {

// The last runs of a lock as the servers store them: the lines of core/protocol.txt.

/// What a release brings to be stored of the run that ends with it. A run has ended by now,
/// whatever a clock says.
std::string encode_run(const RunRecord& record);

/// What is stored, with the ages that it has at `time` of the server's clock. Text that no version
/// can have written is no record.
LastRuns decode_runs(std::string_view text, Duration time);

}  // namespace redlock
