#include "support/natural_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace redlock {
namespace {

TEST(NaturalOrder, ComparesRunsOfDigitsAsNumbers) {
  std::vector<std::string> keys{"job10",  "job2", "job", "a", "job2b", "job02",
                                "job10a", "9",    "10",  "",  "\xff",  "B"};
  std::ranges::sort(keys, comes_before);
  EXPECT_EQ(keys, (std::vector<std::string>{"", "9", "10", "B", "a", "job", "job02", "job2",
                                            "job2b", "job10", "job10a", "\xff"}));
}

TEST(NaturalOrder, KnowsNumbersOfAnyLength) {
  EXPECT_TRUE(comes_before("99999999999999999999998", "99999999999999999999999"));
  EXPECT_TRUE(comes_before("99999999999999999999999", "100000000000000000000000"));
  EXPECT_FALSE(comes_before("x", "x"));
}

}  // namespace
}  // namespace redlock
