#include "proc/control_group.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace redlock::proc {
namespace {

TEST(TrackedGroupIn, PrefersTheHierarchyOfSystemd) {
  EXPECT_EQ(tracked_group_in("0::/system.slice/a.service\n"), "/system.slice/a.service");
  EXPECT_EQ(tracked_group_in("9:name=systemd:/a\n4:memory:/b\n0::/c\n"), "/a");
  EXPECT_EQ(tracked_group_in("4:memory:/b\n0::/c\n1:name=systemd:/a\n"), "/a");
  EXPECT_EQ(tracked_group_in("0::/with:/colon"), "/with:/colon");
  EXPECT_EQ(tracked_group_in("4:memory:/b\n"), std::nullopt);
  EXPECT_EQ(tracked_group_in("nonsense\n\n"), std::nullopt);
}

TEST(IsManagedBy, ByTheManagerOfTheMachineOrOfAUser) {
  constexpr const char* unit = "/system.slice/a.service";
  EXPECT_TRUE(is_managed_by("/init.scope", unit, unit));
  EXPECT_TRUE(is_managed_by("/init.scope", "/system.slice/a.service/redlock-1-2", unit));
  constexpr const char* users = "/user.slice/user-7.slice/user@7.service/app.slice/b.service";
  EXPECT_TRUE(is_managed_by("/user.slice/user-7.slice/user@7.service/init.scope", users, users));
  EXPECT_FALSE(is_managed_by("/user.slice/user-8.slice/user@8.service/init.scope", users, users));
  EXPECT_FALSE(is_managed_by("/system.slice", unit, unit));
  EXPECT_FALSE(is_managed_by("/", "/", "/"));
}

/// What a manager sends to our group does not reach a command in another.
TEST(IsManagedBy, NotIfTheCommandIsInAnotherGroup) {
  constexpr const char* unit = "/system.slice/a.service";
  EXPECT_FALSE(is_managed_by("/init.scope", "/system.slice/run-u3.scope", unit));
  EXPECT_FALSE(is_managed_by("/init.scope", "/system.slice/a.service2", unit));
  EXPECT_FALSE(is_managed_by("/init.scope", "/", unit));
}

TEST(IsManagedBy, NotByAProcessThatCannotBeSeen) {
  EXPECT_FALSE(is_managed_by(0, ::getpid()));
  EXPECT_FALSE(is_managed_by(::getpid(), 0));
  EXPECT_FALSE(is_managed_by(::getpid(), ::getpid()));
}

}  // namespace
}  // namespace redlock::proc
