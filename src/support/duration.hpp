#pragma once

#include <string>
#include <string_view>

#include "support/boot_clock.hpp"
#include "support/result.hpp"

namespace redlock {

/// `infinity`: longer than every other duration. Add it to an instant only with later(), which
/// saturates.
inline constexpr Duration infinite_duration = Duration::max();

enum class DurationError {
  empty,         ///< the text is empty
  malformed,     ///< a sign, an exponent, a blank, a unit without a number, units not in descending
                 ///< order, …
  unknown_unit,  ///< a number is followed by an unknown unit
  too_large,     ///< does not fit into Duration (about 292 years)
};

/// Reads `500ms`, `30s`, `10min`, `1h30m`, `2d`, `1w`: numbers with units, the larger unit first
/// and each at most once, without blanks. Fractions are allowed (`1.5h`, `.5s`; `2.s` is
/// malformed), signs and exponents are not; digits below a nanosecond are cut off. A bare number
/// means seconds and must be the whole text. `infinity` is infinite_duration; the caller decides
/// whether to accept it.
Result<Duration, DurationError> parse_duration(std::string_view text);

/// The message for the user: one clause with the error in `text` and what is accepted instead.
std::string describe(DurationError error, std::string_view text);

/// Formats a duration for people, in at most two units, rounded down: `0s`, `250ms`, `1.5s`, `42s`,
/// `5m3s`, `2h10m`, `3d4h`, `infinity`. Below ten seconds there is one decimal unless it is zero.
/// Negative spans are shown as `0s`. parse_duration() accepts the result.
std::string format_duration(Duration span);

/// Formats a duration as the value of a setting, exact to a millisecond, with as many units as
/// needed
/// (`1h30m5s`, `1s500ms`). parse_duration() reads the same span from it.
std::string exact_duration(Duration span);

}  // namespace redlock
