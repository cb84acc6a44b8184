#include "support/timestamp.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

TEST(Timestamp, IsUtcWithMilliseconds) {
  EXPECT_EQ(timestamp(Milliseconds(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(timestamp(Milliseconds(1'700'000'000'007)), "2023-11-14T22:13:20.007Z");
  EXPECT_EQ(timestamp(Milliseconds(1'709'164'800'999)), "2024-02-29T00:00:00.999Z");
}

TEST(Timestamp, FormatsTimesBeforeTheEpoch) {
  EXPECT_EQ(timestamp(Milliseconds(-1)), "1969-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace redlock
