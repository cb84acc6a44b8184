#include "support/kernel_calls.hpp"

#include <gtest/gtest.h>
#include <sys/timerfd.h>

#include <cstring>

#include "support/unique_fd.hpp"

namespace redlock {
namespace {

bool is_same(const struct stat& one, const struct stat& other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

TEST(KernelCallsTest, TheAnswersAreThoseOfLibcWhenNothingIsPreloaded) {
  timespec before{};
  timespec after{};
  ::clock_gettime(CLOCK_BOOTTIME, &before);
  const timespec now = kernel::clock(CLOCK_BOOTTIME);
  ::clock_gettime(CLOCK_BOOTTIME, &after);
  const auto as_pair = [](const timespec& time) { return std::pair(time.tv_sec, time.tv_nsec); };
  EXPECT_LE(as_pair(before), as_pair(now));
  EXPECT_LE(as_pair(now), as_pair(after));

  EXPECT_EQ(kernel::effective_user(), ::geteuid());

  const UniqueFd fd(::open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat expected {};
  struct stat status {};
  ASSERT_EQ(::fstat(fd.get(), &expected), 0);
  EXPECT_EQ(kernel::fstat(fd.get(), status), 0);
  EXPECT_TRUE(is_same(status, expected));
  EXPECT_EQ(kernel::stat("/etc", status), 0);
  EXPECT_TRUE(is_same(status, expected));
  ASSERT_EQ(::lstat("/proc/self", &expected), 0);
  EXPECT_EQ(kernel::fstatat(fd.get(), "/proc/self", status, AT_SYMLINK_NOFOLLOW), 0);
  EXPECT_EQ(status.st_mode, expected.st_mode);
}

TEST(KernelCallsTest, ErrorsAreInErrno) {
  struct stat status {};
  errno = 0;
  EXPECT_EQ(kernel::fstat(-1, status), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(kernel::stat("/none", status), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(kernel::fchown(-1, 0, 0), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(kernel::set_timer(-1, {}), -1);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace redlock
