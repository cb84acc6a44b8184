#include "proc/watched_process.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <csignal>

namespace redlock::proc {
namespace {

pid_t first_parent = 0;
pid_t next_parent = 0;

pid_t parent_that_changes() {
  return std::exchange(first_parent, next_parent);
}

/// The error for a parent whose pid is `first`, and `next` after its pidfd was opened.
auto watch(pid_t first, pid_t next) {
  first_parent = first;
  next_parent = next;
  return watch_parent_process(parent_that_changes);
}

bool has_ended(const UniqueFd& parent) {
  pollfd readable{parent.get(), POLLIN, 0};
  return ::poll(&readable, 1, 0) == 1;
}

TEST(ParentProcess, ItsEndIsSeen) {
  EXPECT_FALSE(has_ended(*watch_parent_process()));
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  const auto parent = watch(child, child);
  ASSERT_TRUE(parent);
  EXPECT_FALSE(has_ended(*parent));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(has_ended(*parent));
}

TEST(ParentProcess, IsNotTheNextProcessWithItsNumber) {
  const auto parent = watch(::getpid(), ::getppid());
  ASSERT_FALSE(parent);
  EXPECT_TRUE(parent.error().may_have_ended);
}

TEST(ParentProcess, MayHaveEndedWhereItIsProcess1) {
  const auto parent = watch(1, 1);
  ASSERT_FALSE(parent);
  EXPECT_TRUE(parent.error().may_have_ended);
}

TEST(ParentProcess, CannotBeSeenInAnotherPidNamespace) {
  const auto parent = watch(0, 0);
  ASSERT_FALSE(parent);
  EXPECT_FALSE(parent.error().may_have_ended);
}

}  // namespace
}  // namespace redlock::proc
