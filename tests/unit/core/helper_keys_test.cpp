#include "core/helper_keys.hpp"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../samples.hpp"

namespace redlock {
namespace {

using testing::resource;

TEST(HashSlot, MatchesPublishedValues) {
  EXPECT_EQ(hash_slot("123456789"), 0x31c3 % 16384);
  EXPECT_EQ(hash_slot("foo"), 12182);
  EXPECT_EQ(hash_slot("bar"), 5061);
  EXPECT_EQ(hash_slot("hello"), 866);
  EXPECT_EQ(hash_slot(""), 0);
}

TEST(HashSlot, HashesTheFirstNonEmptyTagAlone) {
  EXPECT_EQ(hash_slot("{user1000}.following"), hash_slot("{user1000}.followers"));
  EXPECT_EQ(hash_slot("{user1000}.following"), hash_slot("user1000"));
  EXPECT_EQ(hash_slot("foo{{bar}}zap"), hash_slot("{bar"));
  EXPECT_EQ(hash_slot("foo{bar}{zap}"), hash_slot("bar"));
  EXPECT_EQ(hash_slot("}{foo}"), hash_slot("foo"));
}

TEST(HashSlot, HashesTheWholeKeyWithoutATag) {
  EXPECT_NE(hash_slot("foo{}{bar}"), hash_slot("bar"));
  EXPECT_EQ(hash_slot("foo{}{bar}"), 8363);
  EXPECT_NE(hash_slot("foo{bar"), hash_slot("bar"));
  EXPECT_NE(hash_slot("foo}bar{"), hash_slot("bar"));
}

/// Short texts over the characters that matter, all of them; longer and binary ones at random, the
/// same every time.
std::vector<std::string> odd_keys() {
  std::set<std::string> keys{"deploy",
                             "a b",
                             "line\nbreak",
                             std::string("nul\0byte", 8),
                             "\xff\xfe",
                             "k*?[x]",
                             "123",
                             "{redlock:owner:{x}}",
                             std::string(Resource::max_bytes, 'x'),
                             std::string(Resource::max_bytes, '}'),
                             std::string(Resource::max_bytes, '{')};
  std::vector<std::string> shorter{""};
  for (int length = 1; length <= 5; ++length) {
    std::vector<std::string> longer;
    for (const std::string& text : shorter) {
      for (const char c : {'{', '}', '1'}) longer.push_back(text + c);
    }
    keys.insert(longer.begin(), longer.end());
    shorter = std::move(longer);
  }
  std::mt19937 random;  // NOLINT: reproducible on purpose
  for (int i = 0; i < 400; ++i) {
    std::string key;
    for (std::size_t size = random() % 12 + 1; size > 0; --size) {
      const std::uint32_t drawn = static_cast<std::uint32_t>(random());
      key += drawn % 3 == 0 ? '{' : drawn % 3 == 1 ? '}' : static_cast<char>(drawn >> 8 & 0xffU);
    }
    keys.insert(key);
  }
  // A key may be spelled like the tail of another's helper key.
  for (const std::string key : {"foo", "a}b", "x{y}z"}) {
    const std::string owner = HelperKeys(resource(key)).owner();
    keys.insert(owner.substr(owner.find('{')));
  }
  return {keys.begin(), keys.end()};
}

TEST(HelperKeys, HaveTheDocumentedForm) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"foo", "redlock:owner:{foo}"},        {"a{b", "redlock:owner:{a{b}"},
      {"{foo}", "redlock:owner:{foo}{foo}"}, {"x{y}z", "redlock:owner:{y}x{y}z"},
      {"{{b}}", "redlock:owner:{{b}{{b}}"},
  };
  for (const auto& [key, owner] : rows) EXPECT_EQ(HelperKeys(resource(key)).owner(), owner);
  EXPECT_EQ(HelperKeys(resource("k")).fence(), "redlock:fence:{k}");
  EXPECT_EQ(HelperKeys(resource("k")).released(), "redlock:released:{k}");
}

TEST(HelperKeys, UseTheSmallestNumberInTheSlotOfAKeyWithoutATag) {
  for (const std::string key : {"a}b", "}", "{}", "foo{}{bar}", "}{"}) {
    unsigned number = 0;
    while (hash_slot(std::to_string(number)) != hash_slot(key)) ++number;
    EXPECT_EQ(HelperKeys(resource(key)).owner(),
              "redlock:owner:{" + std::to_string(number) + "}" + key);
  }
}

TEST(HelperKeys, LieInTheSlotOfTheirKey) {
  for (const std::string& key : odd_keys()) {
    const HelperKeys helpers(resource(key));
    for (const std::string& helper : {helpers.fence(), helpers.owner(), helpers.released()})
      EXPECT_EQ(hash_slot(helper), hash_slot(key)) << helper;
  }
}

TEST(HelperKeys, BelongToOneResourceOnly) {
  std::map<std::string, std::string> seen;
  for (const std::string& key : odd_keys()) {
    const HelperKeys helpers(resource(key));
    for (const std::string& helper : {helpers.fence(), helpers.owner(), helpers.released()}) {
      const auto [at, is_new] = seen.emplace(helper, key);
      EXPECT_TRUE(is_new) << helper << " belongs to " << key << " and to " << at->second;
      EXPECT_FALSE(Resource::from(helper).has_value())
          << "a helper key could be locked: " << helper;
    }
  }
}

TEST(HelperKeys, GiveTheResourceBackFromItsOwnerKey) {
  const auto keys = odd_keys();
  ASSERT_GT(keys.size(), 700U);
  for (const std::string& key : keys)
    EXPECT_EQ(HelperKeys::resource_of_owner(HelperKeys(resource(key)).owner()), resource(key))
        << key;
}

TEST(HelperKeys, AreMatchedByTheScanPattern) {
  const auto matches = [](const std::string& pattern, const std::string& name) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  };
  for (const std::string& key : odd_keys()) {
    if (key.find('\0') != std::string::npos) continue;
    const HelperKeys names(resource(key));
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, key.size() / 2, key.size()}) {
      const std::string prefix = key.substr(0, length);
      EXPECT_TRUE(matches(HelperKeys::owners_like(prefix), names.owner())) << key << ' ' << prefix;
      EXPECT_TRUE(matches(HelperKeys::helpers_like(prefix), names.last())) << key << ' ' << prefix;
    }
  }
  EXPECT_FALSE(matches(HelperKeys::owners_like("a*[b]?\\"), HelperKeys(resource("axxbx")).owner()));
  EXPECT_TRUE(
      matches(HelperKeys::owners_like("a*[b]?\\"), HelperKeys(resource("a*[b]?\\c")).owner()));
}

TEST(HelperKeys, KnowAnOwnerKeyThatTheyDidNotWrite) {
  for (const std::string_view key :
       {"", "foo", "redlock:owner:", "redlock:owner:{", "redlock:owner:{}", "redlock:owner:{foo",
        "redlock:owner:foo}", "redlock:fence:{foo}", "redlock:owner:{foo}bar",
        "redlock:owner:{foo}x{bar}", "redlock:owner:{}{}", "redlock:owner:{1}a}b",
        "redlock:owner:{redlock:x}", "xredlock:owner:{foo}", "redlock:owner:{foo}}"}) {
    EXPECT_EQ(HelperKeys::resource_of_owner(key), std::nullopt) << key;
  }
  EXPECT_EQ(HelperKeys::resource_of_owner("redlock:owner:{" +
                                          std::string(Resource::max_bytes + 1, 'x') + "}"),
            std::nullopt);
}

}  // namespace
}  // namespace redlock
