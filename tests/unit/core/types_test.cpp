#include "core/types.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace redlock {
namespace {

using namespace std::chrono_literals;

TEST(Resource, TakesAnyBytesVerbatim) {
  for (const std::string& key : std::vector<std::string>{
           "a", "deploy", "line\nbreak", std::string("\0\xff", 2), "{a}b", "redlock", "Redlock:x",
           "xredlock:", " redlock:", std::string(4096, 'x')}) {
    const auto resource = Resource::from(key);
    ASSERT_TRUE(resource.has_value()) << key;
    EXPECT_EQ(resource->key(), key);
  }
}

TEST(Resource, RefusesWhatCannotBeAKey) {
  EXPECT_EQ(Resource::from("").error(), ResourceError::empty);
  EXPECT_EQ(Resource::from(std::string(4097, 'x')).error(), ResourceError::too_long);
  EXPECT_EQ(Resource::from("redlock:").error(), ResourceError::reserved);
  EXPECT_EQ(Resource::from("redlock:owner:{x}").error(), ResourceError::reserved);
}

TEST(Resource, SortsByBytes) {
  EXPECT_LT(Resource::from("a").value(), Resource::from("b").value());
  EXPECT_EQ(Resource::from("a").value(), Resource::from("a").value());
}

TEST(Resource, HasADescriptionForEachError) {
  EXPECT_NE(describe(ResourceError::empty).find("empty"), std::string::npos);
  EXPECT_NE(describe(ResourceError::too_long).find("4096"), std::string::npos);
  EXPECT_NE(describe(ResourceError::reserved).find("redlock:"), std::string::npos);
}

TEST(Token, ShowsItsBytesAsHexadecimalDigits) {
  std::array<std::byte, 16> random{};
  for (std::size_t i = 0; i < random.size(); ++i) random[i] = static_cast<std::byte>(i * 17);
  EXPECT_EQ(Token::from_random(random).secret(), "00112233445566778899aabbccddeeff");
}

TEST(Token, ReadsItsOwnTextOnly) {
  const std::string text = "00112233445566778899aabbccddeeff";
  ASSERT_TRUE(Token::from_text(text).has_value());
  EXPECT_EQ(Token::from_text(text)->secret(), text);
  for (const std::string_view other :
       {"", "00112233445566778899aabbccddeef", "00112233445566778899aabbccddeeff0",
        "00112233445566778899AABBCCDDEEFF", "00112233445566778899aabbccddeefg",
        "0x112233445566778899aabbccddeeff", "00112233445566778899aabbccddeef\n"}) {
    EXPECT_FALSE(Token::from_text(other).has_value()) << other;
  }
}

TEST(Fence, ReadsDecimalDigitsUpToItsLargestValue) {
  EXPECT_EQ(Fence::from_text("0"), Fence(0));
  EXPECT_EQ(Fence::from_text("42"), Fence(42));
  EXPECT_EQ(Fence::from_text("4503599627370496"), Fence(Fence::max));
  for (const std::string_view text :
       {"", "4503599627370497", "18446744073709551617", "99999999999999999999999", "-1", "+1", " 1",
        "1 ", "1.0", "1e3", "0x1", "1\n"}) {
    EXPECT_EQ(Fence::from_text(text), std::nullopt) << text;
  }
}

TEST(Fence, WritesWhatItReads) {
  for (const std::string_view text : {"0", "1", "1700000000000", "4503599627370496"})
    EXPECT_EQ(Fence::from_text(text)->text(), text);
}

TEST(Fence, IsOrderedByValue) {
  EXPECT_LT(Fence(9), Fence(10));
  EXPECT_EQ(Fence(), Fence(0));
}

TEST(SlotName, IsNoNumberAndNoOption) {
  for (const std::string_view name :
       {"a", "phone1", "1e3", "0x10", "a-b_c.d:e", ".", "_", ":", "7-"}) {
    EXPECT_TRUE(is_slot_name(name)) << name;
  }
  EXPECT_TRUE(is_slot_name(std::string(64, 'x')));
  for (const std::string_view text :
       {"", "7", "1000", "-", "-1", "-a", "a,b", "a b", "a/b", "\xff"})
    EXPECT_FALSE(is_slot_name(text)) << text;
  EXPECT_FALSE(is_slot_name(std::string(65, 'x')));
}

TEST(Hold, HasTheSlotsThatWereGrantedByTheirPositions) {
  EXPECT_EQ(hold_in({true, 4}, {1, 3}), (Hold{true, {1, 3}}));
  EXPECT_EQ(hold_in({true, 2, 1, {"b", "a"}}, {1}), (Hold{true, {}, {"a"}}));
  EXPECT_EQ(hold_in({true, 1, 1, {"2"}}, {0}), (Hold{true, {2}}));
  EXPECT_EQ(hold_in({}, {}), Hold{});
}

TEST(Ttl, IsCutToMilliseconds) {
  EXPECT_EQ(Ttl::from(1ms)->length(), 1ms);
  EXPECT_EQ(Ttl::from(2ms - 1ns)->length(), 1ms);
  EXPECT_EQ(Ttl::from(24h * 365)->length(), Ttl::max);
  EXPECT_EQ(Ttl::from(24h * 365 + 1ms - 1ns)->length(), Ttl::max);
}

TEST(Ttl, RefusesWhatIsTooShortOrTooLong) {
  for (const Duration span : {Duration(0ns), Duration(1ms - 1ns), Duration(-1s), Duration::min(),
                              Duration::max(), Duration(24h * 365 + 1ms)}) {
    EXPECT_EQ(Ttl::from(span), std::nullopt) << span.count();
  }
}

}  // namespace
}  // namespace redlock
