#include "support/moment.hpp"

#include <chrono>
#include <ctime>
#include <optional>

#include "support/text.hpp"

namespace redlock {
namespace {

namespace chrono = std::chrono;
using chrono::days;
using chrono::hours;
using chrono::minutes;
using chrono::seconds;
using chrono::year_month_day;

/// Reads the parts of a time from left to right. Each function returns false, or nullopt, if the
/// rest begins with something else.
class MomentReader {
 public:
  explicit MomentReader(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool is_at_end() const { return rest_.empty(); }

  bool take(char sign) {
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// A number of exactly so many digits.
  std::optional<int> number(std::size_t digits) {
    if (rest_.size() < digits) return std::nullopt;
    int value = 0;
    for (const char c : rest_.substr(0, digits)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = 10 * value + (c - '0');
    }
    rest_.remove_prefix(digits);
    return value;
  }

  /// `2026-12-01`, followed by `T` or a blank.
  std::optional<year_month_day> date() {
    const std::string_view before = rest_;
    const auto y = number(4);
    const auto m = y && take('-') ? number(2) : std::nullopt;
    const auto d = m && take('-') ? number(2) : std::nullopt;
    if (d && (take('T') || take(' '))) {
      return year_month_day{chrono::year(*y), chrono::month(static_cast<unsigned>(*m)),
                            chrono::day(static_cast<unsigned>(*d))};
    }
    rest_ = before;
    return std::nullopt;
  }

  /// `09:00` or `09:00:30`.
  std::optional<seconds> time_of_day() {
    const auto h = number(2);
    const auto m = h && take(':') ? number(2) : std::nullopt;
    if (!m || *h > 23 || *m > 59) return std::nullopt;
    if (!take(':')) return hours(*h) + minutes(*m);
    const auto s = number(2);
    if (!s || *s > 59) return std::nullopt;
    return hours(*h) + minutes(*m) + seconds(*s);
  }

  /// The offset of a zone from UTC: `Z`, `+01:00` or `+0100`.
  std::optional<seconds> zone() {
    if (take('Z')) return seconds(0);
    const bool is_west = take('-');
    if (!is_west && !take('+')) return std::nullopt;
    const auto h = number(2);
    if (!h || *h > 23) return std::nullopt;
    (void)take(':');
    const auto m = number(2);
    if (!m || *m > 59) return std::nullopt;
    const seconds offset = hours(*h) + minutes(*m);
    return is_west ? -offset : offset;
  }

 private:
  std::string_view rest_;
};

/// The moment of this date and time in the zone of this process; nullopt: there is none.
std::optional<seconds> local_moment(const year_month_day& date, seconds time) {
  const chrono::hh_mm_ss parts(time);
  std::tm fields{};
  fields.tm_year = static_cast<int>(date.year()) - 1900;
  fields.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
  fields.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
  fields.tm_hour = static_cast<int>(parts.hours().count());
  fields.tm_min = static_cast<int>(parts.minutes().count());
  fields.tm_sec = static_cast<int>(parts.seconds().count());
  fields.tm_isdst = -1;
  const std::time_t moment = std::mktime(&fields);
  return moment == -1 ? std::nullopt : std::optional(seconds(moment));
}

std::optional<seconds> moment_of(const year_month_day& date, seconds time,
                                 std::optional<seconds> zone) {
  if (!zone) return local_moment(date, time);
  return chrono::sys_days(date).time_since_epoch() + time - *zone;
}

/// The date at `now`, in the zone or else in that of this process.
year_month_day date_of(Milliseconds now, std::optional<seconds> zone) {
  const auto whole = chrono::floor<seconds>(now);
  if (zone) return chrono::floor<days>(chrono::sys_seconds(whole + *zone));
  const std::time_t moment = whole.count();
  std::tm fields{};
  ::localtime_r(&moment, &fields);
  return year_month_day{chrono::year(fields.tm_year + 1900),
                        chrono::month(static_cast<unsigned>(fields.tm_mon + 1)),
                        chrono::day(static_cast<unsigned>(fields.tm_mday))};
}

}  // namespace

Result<Milliseconds, std::string> parse_moment(std::string_view text, Milliseconds now) {
  MomentReader reader(text);
  const auto date = reader.date();
  const auto time = reader.time_of_day();
  std::optional<seconds> zone;
  bool is_valid = time.has_value() && (!date || date->ok());
  if (is_valid && !reader.is_at_end()) {
    zone = reader.zone();
    is_valid = zone && reader.is_at_end();
  }
  if (!is_valid) {
    return unexpected<std::string>(
        "'" + escape_for_terminal(text) +
        "' is not a time; write '2026-12-01 09:00', 09:00 (the next one), "
        "or with a zone 2026-12-01T09:00Z or 2026-12-01T09:00+01:00");
  }
  const year_month_day first = date ? *date : date_of(now, zone);
  auto moment = moment_of(first, *time, zone);
  if (!date && moment && *moment <= now)
    moment = moment_of(year_month_day(chrono::sys_days(first) + days(1)), *time, zone);
  if (!moment || *moment <= now)
    return unexpected<std::string>("'" + escape_for_terminal(text) + "' has passed");
  return Milliseconds(*moment);
}

}  // namespace redlock
