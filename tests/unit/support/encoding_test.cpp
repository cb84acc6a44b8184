#include "support/encoding.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace redlock {
namespace {

TEST(Base64url, EncodesThePublishedVectorsWithoutPadding) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},         {"foo", "Zm9v"},
      {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : rows) {
    EXPECT_EQ(encode_base64url(bytes), text);
    EXPECT_EQ(decode_base64url(text), bytes);
  }
}

TEST(Base64url, UsesTheAlphabetThatIsSafeInUrls) {
  EXPECT_EQ(encode_base64url("\xfb\xff\xbf"), "-_-_");
  EXPECT_EQ(decode_base64url("-_-_"), "\xfb\xff\xbf");
}

TEST(Base64url, RoundTripsEveryByte) {
  std::string bytes;
  for (int value = 0; value < 256; ++value) {
    bytes += static_cast<char>(value);
    EXPECT_EQ(decode_base64url(encode_base64url(bytes)), bytes);
  }
}

TEST(Base64url, RefusesWhatItDoesNotProduce) {
  for (const std::string_view text :
       {"Zg==", "Zg=", "Zm8=", "Z", "Zm9vY", "+/+/", "Zm 9", "Zm9\n", "Zm.v", "Z\xc3\xa4"}) {
    EXPECT_EQ(decode_base64url(text), std::nullopt) << text;
  }
  EXPECT_EQ(decode_base64url(std::string_view("Zm\0v", 4)), std::nullopt);
}

TEST(Base64url, RefusesStrayBits) {
  for (const std::string_view text : {"Zh", "Zv", "Zm9", "Zm-"})
    EXPECT_EQ(decode_base64url(text), std::nullopt) << text;
}

TEST(Base64url, HasOneSpellingForEachTextOfThreeDigits) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  int accepted = 0;
  for (const char a : digits) {
    for (const char b : digits) {
      for (const char c : digits) {
        const std::string text{a, b, c};
        const auto bytes = decode_base64url(text);
        if (!bytes) continue;
        ++accepted;
        EXPECT_EQ(encode_base64url(*bytes), text);
      }
    }
  }
  EXPECT_EQ(accepted, 65536);
}

}  // namespace
}  // namespace redlock
