#pragma once

#include <string>
#include <string_view>

#include "support/boot_clock.hpp"
#include "support/result.hpp"

namespace redlock {

/// Reads a wall-clock time that lies after `now`: `2026-12-01 09:00`, `2026-12-01T09:00:30` or
/// `09:00`, which is the next one. It is local time unless a zone follows: `Z`, `+01:00`, `-0330`.
/// The error is one clause for the user.
Result<Milliseconds, std::string> parse_moment(std::string_view text, Milliseconds now);

}  // namespace redlock
