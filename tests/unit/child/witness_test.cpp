#include "child/witness.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include "in_child.hpp"

namespace redlock::child {
namespace {

using namespace testing;

/// In a process group of its own, whose signals do not end it.
void in_group(const std::function<void()>& body) {
  in_child([&body] {
    ASSERT_EQ(::setpgid(0, 0), 0);
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) ::signal(signal, [](int) {});
    body();
  });
}

TEST(Witness, SawWhatTheWholeGroupGot) {
  in_group([] {
    Witness witness;
    EXPECT_FALSE(witness.saw(SIGTERM));
    ::kill(0, SIGTERM);
    EXPECT_TRUE(eventually([&] { return witness.saw(SIGTERM); }));
    EXPECT_FALSE(witness.saw(SIGTERM)) << "once";
  });
}

TEST(Witness, DidNotSeeWhatWeGotAlone) {
  in_group([] {
    Witness witness;
    ::kill(::getpid(), SIGTERM);
    // What comes behind it is there: so is all before it.
    ::kill(0, SIGHUP);
    EXPECT_TRUE(eventually([&] {
      EXPECT_FALSE(witness.saw(SIGTERM));
      ::kill(0, SIGHUP);
      return witness.saw(SIGHUP);
    }));
  });
}

TEST(Witness, ForgetsWhateverItSawWhenAsked) {
  in_group([] {
    Witness witness;
    ::kill(witness.pid(), SIGINT);
    ::kill(witness.pid(), SIGTERM);
    EXPECT_TRUE(eventually([&] { return witness.saw(SIGTERM); }));
    EXPECT_FALSE(witness.saw(SIGINT));
  });
}

TEST(Witness, DoesNotDieOfWhatItSees) {
  in_group([] {
    Witness witness;
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGTSTP, SIGPIPE, SIGALRM, SIGTERM}) {
      ::kill(witness.pid(), signal);
      EXPECT_TRUE(eventually([&] { return witness.saw(signal); })) << signal;
    }
    EXPECT_EQ(::waitpid(witness.pid(), nullptr, WNOHANG), 0);
  });
}

TEST(Witness, LeavesOurSignalMaskAsItWas) {
  in_group([] {
    sigset_t before;
    sigset_t after;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR1);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    const Witness witness;
    ::sigprocmask(SIG_SETMASK, nullptr, &after);
    EXPECT_EQ(::sigismember(&after, SIGUSR1), 1);
    EXPECT_EQ(::sigismember(&after, SIGTERM), 0);
  });
}

TEST(Witness, EndsWithUs) {
  in_group([] {
    pid_t witness = 0;
    {
      const Witness short_lived;
      witness = short_lived.pid();
    }
    EXPECT_EQ(::waitpid(witness, nullptr, WNOHANG), -1);
  });
}

TEST(Witness, DoesNotOutliveAParentThatWasKilled) {
  Pipe life;  // ends when the last who has it has
  const pid_t parent = forked([] {
    ::setpgid(0, 0);
    const Witness witness;
    return ::kill(::getpid(), SIGKILL);
  });
  EXPECT_EQ(WTERMSIG(status_of(parent)), SIGKILL);
  life.write_end.reset();
  EXPECT_EQ(life.read(), "");
}

}  // namespace
}  // namespace redlock::child
