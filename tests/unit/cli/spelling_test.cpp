#include "cli/spelling.hpp"

#include <gtest/gtest.h>

#include <array>

namespace redlock::cli {
namespace {

constexpr std::array<std::string_view, 4> names{"run", "release", "status", "server-timeout"};

TEST(Spelling, NamesTheNearestWord) {
  EXPECT_EQ(did_you_mean("rum", names), "; did you mean 'run'?");
  EXPECT_EQ(did_you_mean("rnu", names), "; did you mean 'run'?");
  EXPECT_EQ(did_you_mean("relase", names), "; did you mean 'release'?");
  EXPECT_EQ(did_you_mean("statsu", names), "; did you mean 'status'?");
  EXPECT_EQ(did_you_mean("server_timeou", names), "; did you mean 'server-timeout'?");
}

TEST(Spelling, NamesTheOnlyNameWithThisPrefix) {
  EXPECT_EQ(did_you_mean("serv", names), "; did you mean 'server-timeout'?");
  EXPECT_EQ(did_you_mean("st", names), "; did you mean 'status'?");
  EXPECT_EQ(did_you_mean("r", names), "");
}

TEST(Spelling, NamesNoDistantWord) {
  EXPECT_EQ(did_you_mean("", names), "");
  EXPECT_EQ(did_you_mean("stop", names), "");
  EXPECT_EQ(did_you_mean("rue", names), "; did you mean 'run'?");
  EXPECT_EQ(did_you_mean("rows", names), "");
  EXPECT_EQ(did_you_mean(std::string(100000, 'r'), names), "");
}

}  // namespace
}  // namespace redlock::cli
