#include "core/lease_handle.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace redlock {
namespace {

constexpr std::string_view secret = "0123456789abcdef0123456789abcdef";
constexpr std::string_view good =
    "1.x.85944171f73967e8.ZGVwbG95.0123456789abcdef0123456789abcdef.42";

LeaseHandle handle_of(std::string_view key) {
  return {{{Resource::from(key).value(), Token::from_text(secret).value(), Fence(42)}},
          server_set_fingerprint({"foobar"})};
}

std::string good_with(std::string_view part, std::string_view replacement) {
  std::string text(good);
  return text.replace(text.find(part), part.size(), replacement);
}

TEST(ServerSetFingerprint, MatchesThePublishedVectors) {
  EXPECT_EQ(server_set_fingerprint({""}), "cbf29ce484222325");
  EXPECT_EQ(server_set_fingerprint({"a"}), "af63dc4c8601ec8c");
  EXPECT_EQ(server_set_fingerprint({"foobar"}), "85944171f73967e8");
}

TEST(ServerSetFingerprint, DependsOnTheSetAlone) {
  const std::string expected = server_set_fingerprint({"a:1", "b:2", "c:3"});
  EXPECT_EQ(server_set_fingerprint({"c:3", "a:1", "b:2"}), expected);
  EXPECT_EQ(server_set_fingerprint({"c:3", "a:1", "c:3", "b:2", "a:1"}), expected);
  EXPECT_NE(server_set_fingerprint({"a:1", "b:2"}), expected);
  EXPECT_NE(server_set_fingerprint({"a:1", "b:2", "c:4"}), expected);
}

TEST(ServerSetFingerprint, KeepsNeighboursApart) {
  EXPECT_NE(server_set_fingerprint({"ab", "c"}), server_set_fingerprint({"a", "bc"}));
  EXPECT_NE(server_set_fingerprint({"ab", "c"}), server_set_fingerprint({"abc"}));
}

TEST(LeaseHandle, HasTheDocumentedForm) {
  EXPECT_EQ(handle_of("deploy").text(), good);
}

TEST(LeaseHandle, GivesEveryPartBack) {
  std::string binary;
  for (int value = 0; value < 256; ++value) binary += static_cast<char>(value);
  for (const std::string& key : std::vector<std::string>{
           "deploy", "a.b.c", "line\nbreak", "it's {a} key", binary, std::string(4096, '.')}) {
    const auto handle = LeaseHandle::from_text(handle_of(key).text());
    ASSERT_TRUE(handle.has_value());
    ASSERT_EQ(handle->parts.size(), 1U);
    EXPECT_EQ(handle->parts.front().resource.key(), key);
    EXPECT_EQ(handle->parts.front().token.secret(), secret);
    EXPECT_EQ(handle->parts.front().fence, Fence(42));
    EXPECT_EQ(handle->servers, "85944171f73967e8");
  }
}

TEST(LeaseHandle, HoldsSeveralKeys) {
  LeaseHandle several = handle_of("deploy");
  several.parts.push_back({Resource::from("z.z").value(),
                           Token::from_text("ffffffffffffffffffffffffffffffff").value(), Fence(7)});
  EXPECT_EQ(several.text(), good_with("1.x", "1.xx") + ".ei56.ffffffffffffffffffffffffffffffff.7");
  const auto again = LeaseHandle::from_text(several.text());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->parts, several.parts);
  EXPECT_EQ(again->servers, several.servers);
}

TEST(LeaseHandle, MarksWhatIsInherited) {
  LeaseHandle inherited = handle_of("deploy");
  inherited.parts.front().inherited = true;
  EXPECT_EQ(inherited.text(), good_with("1.x", "1.b"));
  EXPECT_EQ(LeaseHandle::from_text(inherited.text())->parts, inherited.parts);
}

TEST(LeaseHandle, RefusesKeysThatAreNotInOrderOrTwice) {
  LeaseHandle several = handle_of("deploy");
  several.parts.push_back(several.parts.front());
  EXPECT_FALSE(LeaseHandle::from_text(several.text()).has_value());
  several.parts.back().resource = Resource::from("build").value();
  EXPECT_FALSE(LeaseHandle::from_text(several.text()).has_value());
}

TEST(LeaseHandle, IsASafeWordForAnyKey) {
  const std::string text = handle_of("'; rm -rf / #\n\xff").text();
  EXPECT_EQ(
      text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."),
      std::string::npos);
}

TEST(LeaseHandle, KeepsHowEachLockIsHeld) {
  for (const Hold& hold :
       {Hold{}, Hold{true}, Hold{true, {0}}, Hold{true, {999}}, Hold{true, {1, 4}},
        Hold{true, {}, {"phone1"}}, Hold{true, {}, {"a.b", "c_-:d"}}}) {
    LeaseHandle handle = *LeaseHandle::from_text(good);
    handle.parts.front().hold = hold;
    const auto again = LeaseHandle::from_text(handle.text());
    ASSERT_TRUE(again) << handle.text();
    EXPECT_EQ(again->parts, handle.parts);
  }
  // The slot of a run below one that has the lock alone is not the lease's.
  LeaseHandle alone = *LeaseHandle::from_text(good);
  alone.parts.front().hold = {false, {0}};
  EXPECT_EQ(alone.text(), good);
}

TEST(LeaseHandle, RefusesWhatItDidNotWrite) {
  ASSERT_TRUE(LeaseHandle::from_text(good).has_value());
  const std::vector<std::string> texts{
      "",
      ".....",
      std::string(good) + ".",
      std::string(good) + ".1",
      std::string(good) + ".ei56.ffffffffffffffffffffffffffffffff.7",
      good_with("1.x", "1.xx"),
      good_with("1.x", "1.xx") + ".ei56.ffffffffffffffffffffffffffffffff",
      good_with("1.x", "1.xx") + ".ei56.ffffffffffffffffffffffffffffffff.07",
      std::string(good) + "\n",
      " " + std::string(good),
      std::string(good.substr(0, good.rfind('.'))),
      good_with("1.x", "2.x"),
      good_with("1.x", "01.x"),
      good_with("1.x", "1.q"),
      good_with("1.x", "1.n"),
      good_with("1.x", "1.n") + ".1000",
      good_with("1.x", "1.n") + ".07",
      good_with("1.x", "1.n") + ".",
      good_with("1.x", "1.n") + ".-1",
      good_with("1.x", "1.s") + ".3",
      good_with("1.x", "1."),
      good_with("85944171f73967e8", "85944171F73967E8"),
      good_with("85944171f73967e8", "85944171f73967e"),
      good_with("85944171f73967e8", "85944171f73967e80"),
      good_with("85944171f73967e8", "85944171f73967eg"),
      good_with("ZGVwbG95", ""),
      good_with("ZGVwbG95", "ZGVwbG9"),
      good_with("ZGVwbG95", "ZGVwbG95=="),
      good_with("ZGVwbG95", "cmVkbG9jazp4"),  // redlock:x
      good_with("0123456789abcdef0123456789abcdef", "0123456789ABCDEF0123456789ABCDEF"),
      good_with("0123456789abcdef0123456789abcdef", "0123456789abcdef"),
      good_with(".42", ".042"),
      good_with(".42", ".-42"),
      good_with(".42", "."),
      good_with(".42", ".4503599627370497"),
  };
  for (const std::string& text : texts)
    EXPECT_EQ(LeaseHandle::from_text(text).has_value(), false) << text;
}

TEST(LeaseHandle, RefusesEveryTextThatIsCutShort) {
  // A fence cut short is a fence still, so the last digit is not among them.
  for (std::size_t size = 0; size + 1 < good.size(); ++size)
    EXPECT_FALSE(LeaseHandle::from_text(good.substr(0, size)).has_value()) << size;
}

constexpr std::string_view boot = "0d1a5e7e-1f0c-4c7a-9a61-0123456789ab";

std::string parent_entry() {
  return "1:" + std::string(boot) + ":4711:98765:30000:" + std::string(good);
}

TEST(ParentLease, IsReadAsItWasWritten) {
  const auto leases = read_held(parent_entry() + " " + parent_entry());
  ASSERT_EQ(leases.size(), 2U);
  EXPECT_EQ(leases[0].guard, (ProcessIdentity{std::string(boot), 4711, 98765}));
  EXPECT_EQ(leases[0].ttl, Ttl::from(std::chrono::seconds(30)));
  EXPECT_EQ(leases[0].handle.text(), good);
  EXPECT_EQ(held_text(leases), parent_entry() + " " + parent_entry());
}

TEST(ParentLease, LeavesOutWhatItDoesNotUnderstand) {
  const std::string whole = parent_entry();
  const auto with = [&whole](std::string_view part, std::string_view other) {
    std::string text = whole;
    return text.replace(text.find(part), part.size(), other);
  };
  for (const std::string& bad : std::vector<std::string>{
           "", " ", "x", "1", ":::::", with("1:0d", "2:0d"), with(":4711:", ":-4711:"),
           with(":4711:", ":0:"), with(":4711:", ":47a:"), with(":98765:", "::"),
           with(":30000:", ":0:"), with(":30000:", ":99999999999999999999:"), with("1.x", "1.q"),
           whole + ":", with(boot, "")}) {
    EXPECT_TRUE(read_held(bad).empty()) << bad;
    const auto leases = read_held(bad + " " + whole + " " + bad);
    EXPECT_EQ(leases.size(), 1U) << bad;
  }
  for (std::size_t size = 0; size + 1 < whole.size(); ++size)
    EXPECT_TRUE(read_held(whole.substr(0, size)).empty()) << size;
}

}  // namespace
}  // namespace redlock
