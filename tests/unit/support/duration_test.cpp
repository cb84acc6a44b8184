#include "support/duration.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace redlock {
namespace {

using namespace std::chrono_literals;

TEST(ParseDuration, ReadsEveryUnit) {
  const std::vector<std::pair<std::string, Duration>> rows{
      {"500ms", 500ms},   {"30s", 30s},       {"5m", 5min},    {"2h", 2h},       {"1d", 24h},
      {"7", 7s},          {"0", 0s},          {"0ms", 0s},     {"007", 7s},      {"1w", 168h},
      {"200msec", 200ms}, {"90sec", 90s},     {"1second", 1s}, {"2seconds", 2s}, {"10min", 10min},
      {"1minute", 1min},  {"3minutes", 3min}, {"1hr", 1h},     {"1hour", 1h},    {"2hours", 2h},
      {"1day", 24h},      {"2days", 48h},     {"1week", 168h}, {"2weeks", 336h},
  };
  for (const auto& [text, span] : rows) EXPECT_EQ(parse_duration(text), span) << text;
}

TEST(ParseDuration, ReadsFractionsExactly) {
  const std::vector<std::pair<std::string, Duration>> rows{
      {"1.5h", 90min},
      {".5s", 500ms},
      {"0.1", 100ms},
      {".25", 250ms},
      {"0.3ms", 300us},
      {"1.000000001s", 1s + 1ns},
      {"0.000000001d", 86400ns},
      {"0.1d", 2h + 24min},
      {"8.7s", 8700ms},
  };
  for (const auto& [text, span] : rows) EXPECT_EQ(parse_duration(text), span) << text;
}

TEST(ParseDuration, ReadsSeveralUnitsInDescendingOrder) {
  const std::vector<std::pair<std::string, Duration>> rows{
      {"1h30m", 90min},         {"1m1s", 61s},
      {"2d12h", 60h},           {"1w1d1h1m1s1ms", 694861001ms},
      {"1h90min", 150min},      {"1m.5s", 60500ms},
      {"1.5h30s", 90min + 30s}, {"0h5m", 5min},
  };
  for (const auto& [text, span] : rows) EXPECT_EQ(parse_duration(text), span) << text;
}

TEST(ParseDuration, ReadsInfinity) {
  EXPECT_EQ(parse_duration("infinity"), infinite_duration);
  EXPECT_EQ(parse_duration("9223372036.854775806s"), infinite_duration - 1ns);
}

TEST(ParseDuration, TruncatesToNanoseconds) {
  EXPECT_EQ(parse_duration("0.0000000019s"), 1ns);
  EXPECT_EQ(parse_duration("0.0000009ms"), 0ns);
  EXPECT_EQ(parse_duration("0.9999999999999999999999999999999999999999s"), 1s - 1ns);
  EXPECT_EQ(parse_duration("0.5" + std::string(5000, '0') + "1s"), 500ms);
}

TEST(ParseDuration, StaysExactWithManyDigits) {
  // A third of a day is 28800 s. With any number of threes the result is at most one nanosecond
  // less.
  EXPECT_EQ(parse_duration("0." + std::string(400, '3') + "d"), 28800s - 1ns);
  // Only with its last digit is this a whole number of nanoseconds.
  EXPECT_EQ(parse_duration("0.0000000000000115740740740740740740740740740741d"), 1ns);
  EXPECT_EQ(parse_duration("0.0000000000000115740740740740740740740740740740d"), 0ns);
}

TEST(ParseDuration, ReadsUpToTheLongestDuration) {
  EXPECT_EQ(parse_duration("9223372036.8547758069s"), Duration::max() - 1ns);
  EXPECT_EQ(parse_duration("106751d23h47m16s854ms"), Milliseconds(9223372036854));
  EXPECT_EQ(parse_duration("106751d"), 24h * 106751);
  EXPECT_EQ(parse_duration(std::string(5000, '0') + "1s"), 1s);
  for (const std::string& text : std::vector<std::string>{
           "9223372036.854775807s", "9223372036.854775808s", "9223372037", "106752d", "106751d24h",
           "15250w2d", "99999999999999999999999ms", "9223372036854775808ms",
           "18446744073709551616s", "18446744073709551617s", "100000000000000000000h",
           std::string(5000, '9') + "d"}) {
    EXPECT_EQ(parse_duration(text), unexpected(DurationError::too_large)) << text;
  }
}

TEST(ParseDuration, ReportsWhatIsWrong) {
  const std::vector<std::pair<std::string, DurationError>> rows{
      {"", DurationError::empty},
      {".", DurationError::malformed},
      {"s", DurationError::malformed},
      {".s", DurationError::malformed},
      {"2.", DurationError::malformed},
      {"2.s", DurationError::malformed},
      {"1.2.3", DurationError::malformed},
      {"1..2", DurationError::malformed},
      {"-1", DurationError::malformed},
      {"+1s", DurationError::malformed},
      {"1e3", DurationError::malformed},
      {"1e-3", DurationError::malformed},
      {"0x10", DurationError::malformed},
      {" 1s", DurationError::malformed},
      {"1s ", DurationError::malformed},
      {"1 s", DurationError::malformed},
      {"1s\n", DurationError::malformed},
      {"1h30", DurationError::malformed},
      {"30m1h", DurationError::malformed},
      {"1h1h", DurationError::malformed},
      {"1m1min", DurationError::malformed},
      {"1h 30m", DurationError::malformed},
      {"1h-30m", DurationError::malformed},
      {"1hm", DurationError::unknown_unit},
      {"1hinfinity", DurationError::unknown_unit},
      {"1h.m", DurationError::malformed},
      {"infinity1s", DurationError::malformed},
      {"1,5s", DurationError::malformed},
      {"1_000", DurationError::malformed},
      {"inf", DurationError::malformed},
      {"5x", DurationError::unknown_unit},
      {"5S", DurationError::unknown_unit},
      {"5us", DurationError::unknown_unit},
      {"5y", DurationError::unknown_unit},
      {"5month", DurationError::unknown_unit},
      {"1e", DurationError::unknown_unit},
      {"1\xc2\xb5s", DurationError::unknown_unit},
      {std::string("1s\0", 3), DurationError::unknown_unit},
  };
  for (const auto& [text, error] : rows)
    EXPECT_EQ(parse_duration(text), unexpected(error)) << '"' << text << '"';
}

TEST(DescribeDurationError, QuotesTheTextEscapedAndNamesTheUnits) {
  EXPECT_EQ(describe(DurationError::unknown_unit, "5\x1b"),
            "'5\\x1b' has an unknown unit; the units are ms, s, m, h, d and w");
  for (const auto error : {DurationError::empty, DurationError::malformed,
                           DurationError::unknown_unit, DurationError::too_large}) {
    EXPECT_EQ(describe(error, "1\n2").find('\n'), std::string::npos);
  }
}

TEST(FormatDuration, ShowsTwoUnitsAtMost) {
  const std::vector<std::pair<Duration, std::string>> rows{
      {0ns, "0s"},
      {-5s, "0s"},
      {Duration::min(), "0s"},
      {999us, "0s"},
      {1ms, "1ms"},
      {250ms, "250ms"},
      {1s - 1ns, "999ms"},
      {1s, "1s"},
      {1099ms, "1s"},
      {1100ms, "1.1s"},
      {1500ms, "1.5s"},
      {9999ms, "9.9s"},
      {10s, "10s"},
      {10900ms, "10s"},
      {42s, "42s"},
      {60s - 1ns, "59s"},
      {60s, "1m"},
      {5min + 3s, "5m3s"},
      {1h - 1ns, "59m59s"},
      {1h, "1h"},
      {1h + 59s, "1h"},
      {2h + 10min, "2h10m"},
      {24h - 1ns, "23h59m"},
      {24h, "1d"},
      {76h, "3d4h"},
      {76h + 59min, "3d4h"},
      {168h, "7d"},
      {Duration::max() - 1ns, "106751d23h"},
      {infinite_duration, "infinity"},
  };
  for (const auto& [span, text] : rows) EXPECT_EQ(format_duration(span), text) << span.count();
}

TEST(ExactDuration, IsParsedAsTheSameSpan) {
  const std::vector<std::pair<Duration, std::string>> rows{
      {0ns, "0s"}, {999us, "0s"},    {100ms, "100ms"},      {1500ms, "1s500ms"},
      {60s, "1m"}, {90min, "1h30m"}, {36h + 5s, "1d12h5s"}, {infinite_duration, "infinity"},
  };
  for (const auto& [span, text] : rows) {
    EXPECT_EQ(exact_duration(span), text);
    if (span == 999us) continue;
    EXPECT_EQ(parse_duration(text), span);
  }
}

}  // namespace
}  // namespace redlock
