#include "support/timestamp.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace redlock {

// Uses the calendar of <chrono>, because gmtime(3) would read the time zone file.
std::string timestamp(Milliseconds wall) {
  const auto days = std::chrono::floor<std::chrono::days>(wall);
  const std::chrono::year_month_day date{std::chrono::sys_days(days)};
  const std::chrono::hh_mm_ss time(wall - days);
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()),
                static_cast<int>(time.subseconds().count()));
  return text.data();
}

std::string local_time(Milliseconds wall, const char* format) {
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(wall).count();
  std::tm fields{};
  ::localtime_r(&seconds, &fields);
  std::array<char, 80> text{};
  (void)std::strftime(text.data(), text.size(), format, &fields);
  return text.data();
}

}  // namespace redlock
