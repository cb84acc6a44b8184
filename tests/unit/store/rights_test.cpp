#include "store/redis/rights.hpp"

#include <gtest/gtest.h>

#include <set>

#include "called_commands.hpp"
#include "replies.hpp"

namespace redlock::redis {
namespace {

using namespace std::chrono_literals;
using testing::error;
using testing::text;

std::set<std::string> tried() {
  std::set<std::string> names;
  for (const Command& probe : right_probes("k", 5000ms)) names.insert(probe.front());
  return names;
}

TEST(RightProbes, TryEveryCommandThatAScriptCalls) {
  std::set<std::string> called;
  for (std::string name : testing::called_commands()) {
    for (char& c : name) c = static_cast<char>(c - 'A' + 'a');
    called.insert(name);
  }
  EXPECT_GE(called.size(), 10U);
  EXPECT_EQ(tried(), called);
}

TEST(RightProbes, BeginWithAKeyThatEndsByItselfAndEndWithDeletingIt) {
  const auto probes = right_probes("k", 5000ms);
  EXPECT_EQ(probes.front(), (Command{"set", "k", "x", "NX", "PX", "5000"}));
  EXPECT_EQ(probes.back(), (Command{"del", "k"}));
}

TEST(RightProbes, NameTheRightsAsRulesDo) {
  EXPECT_EQ(right_to({"get", "k"}), "get");
  EXPECT_EQ(right_to({"pubsub", "numsub", "c"}), "pubsub|numsub");
}

TEST(RightDenied, IsToldFromOtherErrors) {
  EXPECT_TRUE(
      is_denied(error("NOPERM User default has no permissions to run the 'hset' command"), "hset"));
  EXPECT_TRUE(is_denied(
      error("NOPERM this user has no permissions to run the 'hset' command or its subcommand"),
      "hset"));
  EXPECT_TRUE(
      is_denied(error("NOPERM User default has no permissions to run the 'pubsub|numsub' command"),
                "pubsub|numsub"));
  EXPECT_TRUE(is_denied(
      error("NOPERM this user has no permissions to run the 'pubsub' command or its subcommand"),
      "pubsub|numsub"));
  EXPECT_FALSE(is_denied(error("NOPERM No permissions to access a key"), "hset"));
  EXPECT_FALSE(is_denied(error("WRONGTYPE Operation against a key holding the wrong kind of value"),
                         "hset"));
  EXPECT_FALSE(is_denied(text("NOPERM 'hset'"), "hset"));
}

}  // namespace
}  // namespace redlock::redis
