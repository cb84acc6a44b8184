#include "support/timestamp.hpp"

#include <array>
#include <cstdio>
#include <ctime>

namespace redlock {

std::string timestamp(Milliseconds wall) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(wall);
  const std::time_t time = seconds.count();
  std::tm fields{};
  ::gmtime_r(&time, &fields);
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                fields.tm_year + 1900, fields.tm_mon + 1, fields.tm_mday, fields.tm_hour,
                fields.tm_min, fields.tm_sec, static_cast<int>((wall - seconds).count()));
  return text.data();
}

}  // namespace redlock
