#include "store/local/place.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace redlock::local {
namespace {

TEST(PlaceTest, LocalAloneIsThisUsersOwn) {
  const auto place = parse_place("local:");
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->directory, "/run/lock/redlock-cli-" + std::to_string(::geteuid()));
  EXPECT_TRUE(place->is_own);
}

TEST(PlaceTest, ADirectoryHasOneName) {
  for (const std::string_view url : {"local:/srv/locks", "local:/srv/locks/", "local:///srv//locks//"}) {
    const auto place = parse_place(url);
    ASSERT_TRUE(place.has_value()) << url;
    EXPECT_EQ(place->name(), "local:/srv/locks");
    EXPECT_FALSE(place->is_own);
  }
  EXPECT_EQ(parse_place("local:/")->directory, "/");
}

TEST(PlaceTest, TheOwnPlaceIsOwnUnderItsName) {
  EXPECT_TRUE(parse_place(parse_place("local:")->name())->is_own);
}

TEST(PlaceTest, OtherTextIsRefused) {
  EXPECT_FALSE(parse_place("local:relative").has_value());
  EXPECT_FALSE(parse_place("local:/a\nb").has_value());
}

}  // namespace
}  // namespace redlock::local
