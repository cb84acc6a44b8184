#pragma once

#include <ctime>
#include <string>

#include "support/boot_clock.hpp"

namespace redlock {

/// A time of the wall clock as RFC 3339 writes it, in UTC: `2026-11-22T08:55:01.250Z`.
std::string timestamp(Milliseconds wall);

/// The same time in the time zone of this process.
std::tm local_time(Milliseconds wall);

}  // namespace redlock
