#include "support/columns.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

TEST(Columns, CountCharactersAsATerminalShowsThem) {
  EXPECT_EQ(columns_of(""), 0U);
  EXPECT_EQ(columns_of("deploy"), 6U);
  EXPECT_EQ(columns_of("größe"), 5U);
  EXPECT_EQ(columns_of("e\u0301"), 1U) << "a combining mark";
  EXPECT_EQ(columns_of("日本"), 4U);
  EXPECT_EQ(columns_of("🔒 x"), 4U);
  EXPECT_EQ(columns_of("\xff\xc3"), 2U) << "no UTF-8";
}

TEST(Fold, BreaksLinesAtBlanks) {
  EXPECT_EQ(fold("", 10), std::vector<std::string>{""});
  EXPECT_EQ(fold("one two", 10), std::vector<std::string>{"one two"});
  EXPECT_EQ(fold("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(fold("one two   three", 9), (std::vector<std::string>{"one two", "three"}));
}

TEST(Fold, BreaksWordsThatAreTooLong) {
  EXPECT_EQ(fold("abcdefgh ij", 4), (std::vector<std::string>{"abcd", "efgh", "ij"}));
  EXPECT_EQ(fold("日本語", 5), (std::vector<std::string>{"日本", "語"}));
  EXPECT_EQ(fold("日本", 1), (std::vector<std::string>{"日", "本"})) << "no loop without end";
}

TEST(FirstColumns, NeverCutACharacter) {
  EXPECT_EQ(first_columns("", 0), "");
  EXPECT_EQ(first_columns("lock", 4), "lock");
  EXPECT_EQ(first_columns("locked", 4), "lock");
  EXPECT_EQ(first_columns("locked", 0), "");
  EXPECT_EQ(first_columns("a\u00e9\u4e2db", 3), "a\u00e9");
  EXPECT_EQ(first_columns("a\u00e9\u4e2db", 4), "a\u00e9\u4e2d");
}

TEST(ShortenedToColumns, ShowsNoPartOfAWordAsTheWhole) {
  EXPECT_EQ(shortened_to_columns("held (pid 27257)", 16), "held (pid 27257)");
  EXPECT_EQ(shortened_to_columns("held (pid 27257)", 15), "held (pid ...");
  EXPECT_EQ(shortened_to_columns("a-key-without-blanks", 15), "a-key-withou...");
  EXPECT_EQ(shortened_to_columns("held by a host", 3), "held ...") << "never less than 8";
}

}  // namespace
}  // namespace redlock
