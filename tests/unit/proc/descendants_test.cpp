#include "proc/descendants.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace redlock::proc {
namespace {

/// A child of this process and its child. Orphans become children of this process.
class DescendantsTest : public ::testing::Test {
 protected:
  DescendantsTest() {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    child_ = ::fork();
    if (child_ == 0) {
      const pid_t below = ::fork();
      if (below > 0 && ::write(ends[1], &below, sizeof below) != sizeof below) ::_exit(1);
      for (;;) ::pause();
    }
    EXPECT_EQ(::read(ends[0], &grandchild_, sizeof grandchild_), ssize_t{sizeof grandchild_});
    for (const int end : ends) ::close(end);
  }

  ~DescendantsTest() override {
    for (const pid_t pid : living_descendants({::getpid()})) ::kill(pid, SIGKILL);
    while (::waitpid(-1, nullptr, 0) > 0) continue;
  }

  void end_child() const {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  pid_t child_ = 0;
  pid_t grandchild_ = 0;
};

TEST_F(DescendantsTest, AWalkFindsTheOrphanOfAProcessThatDiesMeanwhile) {
  DescendantWalk walk({::getpid()});
  end_child();
  EXPECT_EQ(walk.next(), child_);
  EXPECT_FALSE(walk.was_missed());
  EXPECT_EQ(walk.next(), grandchild_);
  EXPECT_TRUE(walk.was_missed());
  EXPECT_EQ(walk.next(), std::nullopt);
  EXPECT_TRUE(walk.complete());
}

TEST_F(DescendantsTest, AWalkThatIsCutShortIsNotComplete) {
  DescendantWalk walk({::getpid()}, DescendantWalk::Passes::until_stable, Instant());
  EXPECT_EQ(walk.next(), std::nullopt);
  EXPECT_FALSE(walk.complete());
}

TEST_F(DescendantsTest, NoneLivesWhenAllAreDead) {
  EXPECT_FALSE(none_lives({::getpid()}));
  EXPECT_TRUE(none_lives({::getpid()}, [](pid_t) { return false; }));
  end_child();
  EXPECT_FALSE(none_lives({::getpid()}));
  ::kill(grandchild_, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(grandchild_), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(none_lives({::getpid()})) << "a zombie is not living";
}

}  // namespace
}  // namespace redlock::proc
