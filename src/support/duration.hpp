#pragma once

#include <string>
#include <string_view>

#include "support/boot_clock.hpp"
#include "support/result.hpp"

namespace redlock {

enum class DurationError {
  empty,         ///< no text at all
  malformed,     ///< not digits with at most one point: a sign, an exponent, a space, two numbers,
                 ///< …
  unknown_unit,  ///< a number, but then something that is not ms, s, m, h or d
  too_large,     ///< does not fit (about 292 years)
};

/// Reads `500ms`, `30s`, `5m`, `2h`, `1d`; fractions (`1.5h`, `.5s`; `2.s` is malformed); a bare
/// number is seconds. It accepts no sign, no exponent, no blanks and no combination of units.
/// Digits below a nanosecond are cut off.
Result<Duration, DurationError> parse_duration(std::string_view text);

/// What to tell the user: one clause that says what is wrong with `text` and what is accepted.
std::string describe(DurationError error, std::string_view text);

/// For people: at most two units, cut off rather than rounded up: `0s`, `250ms`, `1.5s`, `42s`,
/// `5m 3s`, `2h 10m`, `3d 4h`. Below ten seconds it has one decimal (none when that is zero).
/// Negative spans show as `0s`.
std::string format_duration(Duration span);

}  // namespace redlock
