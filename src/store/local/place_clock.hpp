#pragma once

#include <chrono>
#include <string>

#include "store/local/directory.hpp"
#include "support/clock.hpp"

namespace redlock::local {

/// The time of all locks in a directory: the wall clock when the first of them was made in this boot, and CLOCK_BOOTTIME from there on. It
/// never steps, so what is later has a larger time, whatever is done to the wall clock. Kept in the file `clock-BOOT_ID`, with the time
/// namespace in which it was made: in another one CLOCK_BOOTTIME may be another time, and it is refused there (E4).
Result<std::chrono::microseconds, Fault> place_time(const Directory& directory, const std::string& boot_id, const Clock& clock);

}  // namespace redlock::local
