#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/vote.hpp"

namespace redlock {

// The last runs of a lock as the servers store them, in the lines of core/protocol.txt.

/// The run in the form in which a release sends it. Ages are never negative: the run has ended by
/// now, whatever the clocks show.
std::string encode_run(const RunRecord& record);

/// The stored runs, with their ages at `time` of the server's clock, in ms. A text that no version
/// can have written counts as no record.
LastRuns decode_runs(std::string_view text, std::int64_t time);

}  // namespace redlock
