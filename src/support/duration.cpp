#include "support/duration.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "support/text.hpp"

namespace redlock {
namespace {

constexpr std::string_view digits = "0123456789";

struct Unit {
  std::string_view name;
  Duration length;
};

constexpr Unit day{"d", std::chrono::hours(24)};
constexpr Unit hour{"h", std::chrono::hours(1)};
constexpr Unit minute{"m", std::chrono::minutes(1)};
constexpr Unit second{"s", std::chrono::seconds(1)};
constexpr Unit millisecond{"ms", Milliseconds(1)};

/// The three parts of `12.5ms`.
struct Parts {
  std::string_view whole;
  std::optional<std::string_view> fraction;
  std::string_view unit;
};

std::string_view take_digits(std::string_view& text) {
  const std::string_view taken = text.substr(0, text.find_first_not_of(digits));
  text.remove_prefix(taken.size());
  return taken;
}

Parts split(std::string_view text) {
  Parts parts;
  parts.whole = take_digits(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    parts.fraction = take_digits(text);
  }
  parts.unit = text;
  return parts;
}

bool has_number(const Parts& parts) {
  return parts.fraction ? !parts.fraction->empty() : !parts.whole.empty();
}

/// `1e3`, `5 s`, `1h30m` and `1.2.3` are malformed numbers, not numbers with a wrong unit: the text
/// after the digits looks like more of a number.
bool is_one_word(std::string_view unit) {
  return unit.find_first_of("0123456789.+-_, \t\r\n\v\f") == std::string_view::npos;
}

const Unit* find_unit(std::string_view name) {
  static constexpr std::array units{millisecond, second, minute, hour, day};
  if (name.empty()) return &units[1];
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

std::int64_t digit_value(char digit) {
  return digit - '0';
}

/// 0.FRACTION units, truncated to nanoseconds. Works from the last digit: truncating at each step
/// loses nothing, however many digits there are.
std::int64_t fraction_of(Duration unit, std::string_view fraction) {
  std::int64_t result = 0;
  for (auto digit = fraction.rbegin(); digit != fraction.rend(); ++digit)
    result = (digit_value(*digit) * unit.count() + result) / 10;
  return result;
}

/// WHOLE units plus `rest`; nothing on overflow.
std::optional<Duration> whole_units(Duration unit, std::string_view whole, std::int64_t rest) {
  const std::int64_t limit = (std::numeric_limits<std::int64_t>::max() - rest) / unit.count();
  std::int64_t count = 0;
  for (const char digit : whole) {
    if (count > (limit - digit_value(digit)) / 10) return std::nullopt;
    count = count * 10 + digit_value(digit);
  }
  if (count > limit) return std::nullopt;
  return Duration(count * unit.count() + rest);
}

std::string in_unit(std::int64_t count, const Unit& unit) {
  return std::to_string(count).append(unit.name);
}

std::string in_two_units(Duration span, const Unit& large, const Unit& small) {
  std::string text = in_unit(span / large.length, large);
  if (const auto rest = span % large.length / small.length; rest > 0)
    text.append(" ").append(in_unit(rest, small));
  return text;
}

std::string seconds_with_decimal(Duration span) {
  const auto tenths = span / std::chrono::milliseconds(100);
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text.append(".").append(std::to_string(tenths % 10));
  return text.append(second.name);
}

}  // namespace

Result<Duration, DurationError> parse_duration(std::string_view text) {
  if (text.empty()) return unexpected(DurationError::empty);
  const Parts parts = split(text);
  if (!has_number(parts) || !is_one_word(parts.unit)) return unexpected(DurationError::malformed);
  const Unit* unit = find_unit(parts.unit);
  if (unit == nullptr) return unexpected(DurationError::unknown_unit);
  const auto span = whole_units(unit->length, parts.whole,
                                fraction_of(unit->length, parts.fraction.value_or("")));
  if (!span) return unexpected(DurationError::too_large);
  return *span;
}

std::string describe(DurationError error, std::string_view text) {
  const std::string quoted = "'" + escape_for_terminal(text) + "'";
  switch (error) {
    case DurationError::empty:
      return "the duration is empty; write one like 500ms, 30s, 5m, 2h or 1d";
    case DurationError::malformed:
      return quoted + " is not a duration; write one like 500ms, 30s, 1.5m, 2h or 1d";
    case DurationError::unknown_unit:
      return quoted + " has an unknown unit; the units are ms, s, m, h and d";
    case DurationError::too_large:
      return quoted + " is too long for a duration; at most 292 years fit";
  }
  return quoted + " is not a duration";
}

std::string format_duration(Duration span) {
  if (span < millisecond.length) return "0s";
  if (span < second.length) return in_unit(span / millisecond.length, millisecond);
  if (span < 10 * second.length) return seconds_with_decimal(span);
  if (span < minute.length) return in_unit(span / second.length, second);
  if (span < hour.length) return in_two_units(span, minute, second);
  if (span < day.length) return in_two_units(span, hour, minute);
  return in_two_units(span, day, hour);
}

}  // namespace redlock
