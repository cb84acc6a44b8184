#include "run/wait_line.hpp"

#include <gtest/gtest.h>

namespace redlock::run {
namespace {

TEST(CutToColumns, LeavesWhatFits) {
  EXPECT_EQ(cut_to_columns("", 0), "");
  EXPECT_EQ(cut_to_columns("lock", 4), "lock");
  EXPECT_EQ(cut_to_columns("lock", 80), "lock");
}

TEST(CutToColumns, CutsAtTheLastColumn) {
  EXPECT_EQ(cut_to_columns("locked", 4), "lock");
  EXPECT_EQ(cut_to_columns("locked", 0), "");
}

TEST(CutToColumns, NeverCutsACharacterAndCountsItAsTwo) {
  EXPECT_EQ(cut_to_columns("a\u00e9\u4e2db", 3), "a\u00e9");
  EXPECT_EQ(cut_to_columns("a\u00e9\u4e2db", 4), "a\u00e9");
  EXPECT_EQ(cut_to_columns("a\u00e9\u4e2db", 5), "a\u00e9\u4e2d");
  EXPECT_EQ(cut_to_columns("a\u00e9\u4e2db", 6), "a\u00e9\u4e2db");
}

}  // namespace
}  // namespace redlock::run
