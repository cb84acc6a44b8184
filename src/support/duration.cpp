#include "support/duration.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "support/text.hpp"

namespace redlock {
namespace {

constexpr std::string_view decimal_digits = "0123456789";

constexpr std::string_view infinity = "infinity";

struct Unit {
  std::array<std::string_view, 4> names;  ///< the first is what we print; unused ones are empty
  Duration length;
  [[nodiscard]] constexpr std::string_view name() const { return names.front(); }
};

/// The names are those of systemd.time(7). Months and years are left out: their length varies.
constexpr Unit week{{"w", "week", "weeks"}, std::chrono::hours(24 * 7)};
constexpr Unit day{{"d", "day", "days"}, std::chrono::hours(24)};
constexpr Unit hour{{"h", "hr", "hour", "hours"}, std::chrono::hours(1)};
constexpr Unit minute{{"m", "min", "minute", "minutes"}, std::chrono::minutes(1)};
constexpr Unit second{{"s", "sec", "second", "seconds"}, std::chrono::seconds(1)};
constexpr Unit millisecond{{"ms", "msec"}, Milliseconds(1)};

/// The three parts of `12.5ms`.
struct Parts {
  std::string_view whole;
  std::optional<std::string_view> fraction;
  std::string_view unit;
};

std::string_view take_digits(std::string_view& text) {
  const std::string_view taken = text.substr(0, text.find_first_not_of(decimal_digits));
  text.remove_prefix(taken.size());
  return taken;
}

/// Removes a number and its unit, up to the next number, from the beginning of `text`.
Parts take_parts(std::string_view& text) {
  Parts parts;
  parts.whole = take_digits(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    parts.fraction = take_digits(text);
  }
  parts.unit = text.substr(0, text.find_first_of("0123456789."));
  text.remove_prefix(parts.unit.size());
  return parts;
}

bool has_number(const Parts& parts) {
  return parts.fraction ? !parts.fraction->empty() : !parts.whole.empty();
}

/// `5 s` and `1,5s` are malformed numbers, not numbers with an unknown unit: the text after the
/// digits looks like more of a number.
bool is_one_word(std::string_view unit) {
  return unit.find_first_of("+-_, \t\r\n\v\f") == std::string_view::npos;
}

const Unit* find_unit(std::string_view name) {
  static constexpr std::array units{millisecond, second, minute, hour, day, week};
  for (const Unit& unit : units) {
    if (std::find(unit.names.begin(), unit.names.end(), name) != unit.names.end()) return &unit;
  }
  return nullptr;
}

std::int64_t digit_value(char digit) {
  return digit - '0';
}

/// 0.FRACTION units, truncated to nanoseconds. Works from the last digit, so that truncating at
/// each step stays exact for any number of digits.
std::int64_t fraction_of(Duration unit, std::string_view fraction) {
  std::int64_t result = 0;
  for (auto digit = fraction.rbegin(); digit != fraction.rend(); ++digit)
    result = (digit_value(*digit) * unit.count() + result) / 10;
  return result;
}

/// WHOLE units plus `rest`; nullopt on overflow.
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
  return std::to_string(count).append(unit.name());
}

std::string in_two_units(Duration span, const Unit& large, const Unit& small) {
  std::string text = in_unit(span / large.length, large);
  if (const auto rest = span % large.length / small.length; rest > 0)
    text.append(in_unit(rest, small));
  return text;
}

std::string seconds_with_decimal(Duration span) {
  const auto tenths = span / std::chrono::milliseconds(100);
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text.append(".").append(std::to_string(tenths % 10));
  return text.append(second.name());
}

}  // namespace

Result<Duration, DurationError> parse_duration(std::string_view text) {
  if (text.empty()) return unexpected(DurationError::empty);
  if (text == infinity) return infinite_duration;
  Duration sum{};
  Duration above = infinite_duration;  // the unit before
  for (bool first = true; !text.empty(); first = false) {
    const Parts parts = take_parts(text);
    const bool is_bare = parts.unit.empty();
    if (!has_number(parts) || !is_one_word(parts.unit) || (is_bare && !(first && text.empty())))
      return unexpected(DurationError::malformed);
    const Unit* unit = is_bare ? &second : find_unit(parts.unit);
    // `1e3` and `0x10` are malformed numbers.
    if (unit == nullptr)
      return unexpected(text.empty() ? DurationError::unknown_unit : DurationError::malformed);
    if (unit->length >= above) return unexpected(DurationError::malformed);
    above = unit->length;
    const auto span = whole_units(unit->length, parts.whole,
                                  fraction_of(unit->length, parts.fraction.value_or("")));
    if (!span || *span >= infinite_duration - sum) return unexpected(DurationError::too_large);
    sum += *span;
  }
  return sum;
}

std::string describe(DurationError error, std::string_view text) {
  const std::string quoted = "'" + escape_for_terminal(text) + "'";
  switch (error) {
    case DurationError::empty:
      return "the duration is empty; write one like 500ms, 30s, 5m, 1h30m or 2d";
    case DurationError::malformed:
      return quoted + " is not a duration; write one like 500ms, 30s, 5m, 1h30m or 2d";
    case DurationError::unknown_unit:
      return quoted + " has an unknown unit; the units are ms, s, m, h, d and w";
    case DurationError::too_large:
      return quoted + " is too long for a duration; at most 292 years fit";
  }
  return quoted + " is not a duration";
}

std::string format_duration(Duration span) {
  if (span == infinite_duration) return std::string(infinity);
  if (span < millisecond.length) return "0s";
  if (span < second.length) return in_unit(span / millisecond.length, millisecond);
  if (span < 10 * second.length) return seconds_with_decimal(span);
  if (span < minute.length) return in_unit(span / second.length, second);
  if (span < hour.length) return in_two_units(span, minute, second);
  // 26h, as people write it, not 1d2h.
  const bool is_whole_days = span % day.length < hour.length;
  if (span < day.length || (span < 2 * day.length && !is_whole_days))
    return in_two_units(span, hour, minute);
  return in_two_units(span, day, hour);
}

std::string exact_duration(Duration span) {
  if (span == infinite_duration) return std::string(infinity);
  std::string text;
  for (const Unit& unit : {day, hour, minute, second, millisecond}) {
    if (const auto count = span / unit.length; count > 0) text += in_unit(count, unit);
    span %= unit.length;
  }
  return text.empty() ? "0s" : text;
}

}  // namespace redlock
