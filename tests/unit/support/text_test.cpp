#include "support/text.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <utility>
#include <vector>

namespace redlock {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string utf8(char32_t c) {
  const auto tail = [c](unsigned shift) {
    return static_cast<char>(0x80U | ((c >> shift) & 0x3fU));
  };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xc0U | (c >> 6)), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0U | (c >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xf0U | (c >> 18)), tail(12), tail(6), tail(0)};
}

std::string four_digits(char32_t c) {
  std::string digits(4, '0');
  std::snprintf(digits.data(), digits.size() + 1, "%04x", static_cast<unsigned>(c));
  return digits;
}

TEST(EscapeForTerminal, ShowsControls) {
  const Rows rows{{"a\nb", "a\\nb"},
                  {"\t", "\\t"},
                  {"\r", "\\r"},
                  {std::string(1, '\0'), "\\x00"},
                  {"\x1b[31m", "\\x1b[31m"},
                  {"\x7f", "\\x7f"},
                  {"\x01", "\\x01"},
                  {"\x1f", "\\x1f"},
                  {"\\", "\\\\"},
                  {"\\n", "\\\\n"},
                  {"\xc2\x80", "\\u0080"},
                  {"\xc2\x85", "\\u0085"},
                  {"\xc2\x9b", "\\u009b"},
                  {"\xc2\x9f", "\\u009f"}};
  for (const auto& [text, escaped] : rows) EXPECT_EQ(escape_for_terminal(text), escaped);
}

TEST(EscapeForTerminal, ShowsExactlyTheDeceptiveCharacters) {
  const std::vector<std::pair<char32_t, char32_t>> deceptive{
      {0x80, 0x9f},     {0x61c, 0x61c},   {0x200b, 0x200f}, {0x2028, 0x2029},
      {0x202a, 0x202e}, {0x2060, 0x2060}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};
  for (char32_t c = 0x80; c <= 0x10ffff; ++c) {
    if (c == 0xd800) c = 0xe000;
    bool escaped = false;
    for (const auto& [first, last] : deceptive) escaped = escaped || (first <= c && c <= last);
    ASSERT_EQ(escape_for_terminal(utf8(c)), escaped ? "\\u" + four_digits(c) : utf8(c))
        << four_digits(c);
  }
}

TEST(EscapeForTerminal, LeavesOrdinaryTextAlone) {
  for (const std::string_view text :
       {"", "deploy", " ~'\"$`", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92", "\xc2\xa0"}) {
    EXPECT_EQ(escape_for_terminal(text), text);
  }
}

TEST(EscapeForTerminal, ShowsBytesThatAreNotUtf8) {
  const Rows rows{
      {"\x80", "\\x80"},
      {"\xff", "\\xff"},
      {"\xc0\xaf", "\\xc0\\xaf"},                    // overlong
      {"\xc1\xbf", "\\xc1\\xbf"},                    // overlong
      {"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"},           // overlong
      {"\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf"},  // overlong
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // surrogate
      {"\xed\xbf\xbf", "\\xed\\xbf\\xbf"},           // surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // above U+10FFFF
      {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},  // above U+10FFFF
      {"\xe2\x82", "\\xe2\\x82"},                    // cut short
      {"\xf0\x9f\x94", "\\xf0\\x9f\\x94"},           // cut short
      {"\xe2\x82\x41",
       "\\xe2\\x82"
       "A"},                              // what follows is looked at again
      {"\xe2\xc3\xa4", "\\xe2\xc3\xa4"},  // the same, a valid character
      {"\xe2\x82\n", "\\xe2\\x82\\n"},
      {"\x9b"
       "31m",
       "\\x9b"
       "31m"},  // C1 in a single byte
  };
  for (const auto& [text, escaped] : rows) EXPECT_EQ(escape_for_terminal(text), escaped);
}

TEST(ToValidUtf8, LeavesValidTextAloneEvenControls) {
  for (const std::string& text : {std::string(), std::string("a\0\x1b\\", 4),
                                  std::string("\xe2\x80\xae\xf4\x8f\xbf\xbf\xef\xbf\xbd")}) {
    EXPECT_EQ(to_valid_utf8(text), text);
  }
}

TEST(ToValidUtf8, ReplacesEachBrokenSequence) {
  const std::string r = "\xef\xbf\xbd";
  const Rows rows{{"\xff", r},
                  {"a\x80z", "a" + r + "z"},
                  {"\xe2\x82", r},
                  {"\xe2\x82\x41", r + "A"},
                  {"\xf0\x9f\x94\xe2\x82\xac", r + "\xe2\x82\xac"},
                  {"\xc0\xaf", r + r},
                  {"\xed\xa0\x80", r + r + r},
                  {"\xf4\x90\x80\x80", r + r + r + r}};
  for (const auto& [text, valid] : rows) EXPECT_EQ(to_valid_utf8(text), valid);
}

TEST(ToValidUtf8, IsIdempotentForAnyTwoBytes) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string once =
          to_valid_utf8(std::string{static_cast<char>(a), static_cast<char>(b)});
      ASSERT_EQ(to_valid_utf8(once), once);
      ASSERT_EQ(escape_for_terminal(once).find("\\x8"), std::string::npos);
    }
  }
}

TEST(Shortened, EndsBetweenCharacters) {
  EXPECT_EQ(shortened("12345678", 8), "12345678");
  EXPECT_EQ(shortened("123456789", 8), "12345…");
  EXPECT_EQ(shortened("1234é6789", 8), "1234…");
  EXPECT_EQ(shortened("123é56789", 8), "123é…");
  EXPECT_EQ(shortened("\xff\xff\xff\xff\xff\xff", 5), "\xff\xff…");
  EXPECT_EQ(shortened("long", 3), "…");
}

TEST(ShellQuote, QuotesAllButQuotesAndWhatEscapesInFish) {
  const Rows rows{{"", "''"},
                  {"a", "'a'"},
                  {"it's", "'it'\\''s'"},
                  {"'", "\\'"},
                  {"a\\", "'a'\\\\"},
                  {"\\'x", "\\\\\\''x'"},
                  {"a\\b", "'a\\b'"},
                  {"a\\\\b", "'a'\\\\'\\b'"},
                  {"a b$c`d\"\\\n!*", "'a b$c`d\"\\\n!*'"}};
  for (const auto& [text, word] : rows) EXPECT_EQ(shell_quote(text), word);
}

TEST(ShellQuote, RoundTripsEveryByteThroughEachShellThatIsInstalled) {
  std::string text;
  for (int value = 1; value < 256; ++value) text += static_cast<char>(value);
  text += "''x'\\'\\\\\\a";
  const std::string script = "printf %s " + shell_quote(text);
  for (const std::string name : {"sh", "bash", "dash", "zsh", "fish"}) {
    // Bytes that are not UTF-8 are text in this locale only.
    const std::string line =
        "command -v " + name + " >/dev/null || exit 99; LC_ALL=C " + name + " -c \"$SCRIPT\"";
    ::setenv("SCRIPT", script.c_str(), 1);
    FILE* shell = ::popen(line.c_str(), "r");
    ASSERT_NE(shell, nullptr);
    std::string printed(2 * text.size(), '\0');
    printed.resize(std::fread(printed.data(), 1, printed.size(), shell));
    const int status = ::pclose(shell);
    if (WEXITSTATUS(status) == 99 && name != "sh") continue;
    EXPECT_EQ(status, 0) << name;
    EXPECT_EQ(printed, text) << name;
  }
}

}  // namespace
}  // namespace redlock
