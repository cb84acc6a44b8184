#include "support/moment.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string>

#include "support/timestamp.hpp"

namespace redlock {
namespace {

using namespace std::chrono_literals;

/// Reads times in a zone that is two hours ahead of UTC, at 2026-11-28T10:30:00Z.
class MomentTest : public testing::Test {
 protected:
  MomentTest() {
    ::setenv("TZ", "TST-2", 1);
    ::tzset();
  }
  ~MomentTest() override {
    ::unsetenv("TZ");
    ::tzset();
  }
  MomentTest(const MomentTest&) = delete;
  MomentTest& operator=(const MomentTest&) = delete;

  static std::string read(std::string_view text) {
    constexpr std::chrono::sys_days today{std::chrono::year(2026) / 11 / 28};
    const auto moment = parse_moment(text, today.time_since_epoch() + 10h + 30min);
    return moment ? timestamp(*moment) : "error: " + moment.error();
  }
};

TEST_F(MomentTest, ADateAndTimeAreLocal) {
  EXPECT_EQ(read("2026-12-01 09:00"), "2026-12-01T07:00:00.000Z");
  EXPECT_EQ(read("2026-12-01T09:00:30"), "2026-12-01T07:00:30.000Z");
}

TEST_F(MomentTest, AZoneMayFollow) {
  EXPECT_EQ(read("2026-12-01T09:00Z"), "2026-12-01T09:00:00.000Z");
  EXPECT_EQ(read("2026-12-01T09:00+01:00"), "2026-12-01T08:00:00.000Z");
  EXPECT_EQ(read("2026-12-01 09:00-0330"), "2026-12-01T12:30:00.000Z");
}

TEST_F(MomentTest, ATimeAloneIsTheNextOne) {
  EXPECT_EQ(read("12:31"), "2026-11-28T10:31:00.000Z");
  EXPECT_EQ(read("12:30"), "2026-11-29T10:30:00.000Z");
  EXPECT_EQ(read("09:00"), "2026-11-29T07:00:00.000Z");
  EXPECT_EQ(read("09:00Z"), "2026-11-29T09:00:00.000Z");
  EXPECT_EQ(read("00:30+14:00"), "2026-11-29T10:30:00.000Z") << "it is the 29th there";
}

TEST_F(MomentTest, RefusesWhatHasPassed) {
  EXPECT_EQ(read("2026-11-28T10:30Z"), "error: '2026-11-28T10:30Z' has passed");
}

TEST_F(MomentTest, RefusesWhatIsNoTime) {
  for (const char* text : {"", "9", "9:00", "24:00", "09:60", "tomorrow", "2026-02-30 09:00",
                           "2026-12-01", "2026-12-01 09:00 CET", "09:00+1", "2026-12-0109:00"})
    EXPECT_TRUE(read(text).find("is not a time") != std::string::npos) << text;
}

}  // namespace
}  // namespace redlock
