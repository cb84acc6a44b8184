#pragma once

#include <string>

#include "support/boot_clock.hpp"

namespace redlock {

/// A wall-clock time in UTC, in the form of RFC 3339: `2026-11-22T08:55:01.250Z`.
std::string timestamp(Milliseconds wall);

/// A wall-clock time in the time zone of this process, in a format of strftime(3).
std::string local_time(Milliseconds wall, const char* format);

}  // namespace redlock
