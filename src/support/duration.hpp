#pragma once

#include <string>
#include <string_view>

#include "support/boot_clock.hpp"
#include "support/result.hpp"

namespace redlock {

/// `infinity`: longer than every other duration. What adds it to an instant must saturate.
inline constexpr Duration infinite_duration = Duration::max();

enum class DurationError {
  empty,         ///< no text at all
  malformed,     ///< a sign, an exponent, a blank, a unit without a number, units not in descending
                 ///< order, …
  unknown_unit,  ///< a number, but then something that is no unit
  too_large,     ///< does not fit (about 292 years)
};

/// Reads `500ms`, `30s`, `10min`, `1h30m`, `2d`, `1w`: numbers with units, the larger unit first
/// and each at most once, without blanks. Fractions are allowed (`1.5h`, `.5s`; `2.s` is
/// malformed), no sign and no exponent; digits below a nanosecond are cut off. A bare number is
/// seconds, and stands alone. `infinity` is infinite_duration; whether it makes sense is the
/// caller's to say.
Result<Duration, DurationError> parse_duration(std::string_view text);

/// What to tell the user: one clause that says what is wrong with `text` and what is accepted.
std::string describe(DurationError error, std::string_view text);

/// For people: at most two units, cut off rather than rounded up: `0s`, `250ms`, `1.5s`, `42s`,
/// `5m3s`, `2h10m`, `3d4h`, `infinity`. Below ten seconds it has one decimal (none when that is
/// zero). Negative spans show as `0s`. parse_duration() reads it.
std::string format_duration(Duration span);

/// For a setting: all units that it takes, exact to a millisecond (`1h30m5s`, `1s500ms`), the rest
/// cut off. parse_duration() reads the same span from it.
std::string exact_duration(Duration span);

}  // namespace redlock
