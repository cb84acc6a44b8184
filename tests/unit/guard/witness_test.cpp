#include "guard/witness.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>

#include "../in_child.hpp"

namespace redlock::guard {
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

/// The signal as this process sends it.
bool saw(Witness& witness, int signal, Instant since = Instant()) {
  return witness.saw({signal, false, ::getpid()}, since);
}

/// Asks, and waits for the answer, after which all earlier signals have been reported.
void listen_to(Witness& witness) {
  const int question = witness.ask();
  pollfd readable{witness.fd(), POLLIN, 0};
  while (!witness.answered(question)) {
    ASSERT_EQ(::poll(&readable, 1, static_cast<int>(kHangSeconds) * 1000), 1);
    witness.listen();
  }
}

TEST(Witness, SawASignalToTheWholeGroup) {
  in_group([] {
    Witness witness(0, nullptr);
    EXPECT_FALSE(saw(witness, SIGTERM));
    ::kill(0, SIGTERM);
    listen_to(witness);
    EXPECT_FALSE(saw(witness, SIGINT));
    EXPECT_TRUE(saw(witness, SIGTERM));
    EXPECT_FALSE(saw(witness, SIGTERM)) << "once";
  });
}

TEST(Witness, DidNotSeeASignalToUsAlone) {
  in_group([] {
    Witness witness(0, nullptr);
    ::kill(::getpid(), SIGTERM);
    listen_to(witness);
    EXPECT_FALSE(saw(witness, SIGTERM));
  });
}

TEST(Witness, DistinguishesSenders) {
  in_group([] {
    Witness witness(0, nullptr);
    const pid_t group = ::getpgrp();
    const pid_t other = forked([group] { return ::kill(-group, SIGTERM); });
    EXPECT_EQ(status_of(other), 0);
    listen_to(witness);
    EXPECT_FALSE(saw(witness, SIGTERM));
    EXPECT_TRUE(witness.saw({SIGTERM, false, other}, Instant()));
  });
}

TEST(Witness, DoesNotTakeAnEarlierSignalForALaterOne) {
  in_group([] {
    Witness witness(0, nullptr);
    ::kill(0, SIGTERM);
    listen_to(witness);
    EXPECT_FALSE(saw(witness, SIGTERM, BootClock::now()));
    EXPECT_FALSE(saw(witness, SIGTERM)) << "nor later";
  });
}

TEST(Witness, AnswersAreInTheOrderOfQuestions) {
  in_group([] {
    Witness witness(0, nullptr);
    const int first = witness.ask();
    EXPECT_FALSE(witness.answered(first));
    ::kill(0, SIGTERM);
    listen_to(witness);
    EXPECT_TRUE(witness.answered(first));
    EXPECT_TRUE(saw(witness, SIGTERM));
  });
}

TEST(Witness, ALateAnswerCoversSignalsBeforeTheQuestion) {
  in_group([] {
    Witness witness(0, nullptr);
    ::kill(witness.pid(), SIGSTOP);
    EXPECT_TRUE(eventually([&] { return state_of(witness.pid()) == 'T'; }));
    ::kill(0, SIGTERM);
    ::kill(0, SIGINT);
    const int question = witness.ask();
    witness.listen();
    EXPECT_FALSE(witness.answered(question));
    ::kill(witness.pid(), SIGCONT);
    listen_to(witness);
    EXPECT_TRUE(witness.answered(question));
    EXPECT_TRUE(saw(witness, SIGTERM));
    EXPECT_TRUE(saw(witness, SIGINT));
  });
}

TEST(Witness, ForgetsOnRequest) {
  in_group([] {
    Witness witness(0, nullptr);
    ::kill(0, SIGTERM);
    listen_to(witness);
    witness.forget();
    EXPECT_FALSE(saw(witness, SIGTERM));
    ::kill(0, SIGTERM);
    listen_to(witness);
    EXPECT_TRUE(saw(witness, SIGTERM));
  });
}

TEST(Witness, SurvivesTheSignalsThatItSees) {
  in_group([] {
    Witness witness(0, nullptr);
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM}) {
      ::kill(witness.pid(), signal);
      listen_to(witness);
      EXPECT_TRUE(saw(witness, signal)) << signal;
    }
    for (const int signal : {SIGTSTP, SIGTTIN, SIGPIPE, SIGALRM, SIGWINCH, SIGRTMIN})
      ::kill(witness.pid(), signal);
    listen_to(witness);
    EXPECT_EQ(::waitpid(witness.pid(), nullptr, WNOHANG), 0);
  });
}

TEST(Witness, DistinguishesItsQuestionFromTheSameSignalOfAnotherProcess) {
  in_group([] {
    Witness witness(0, nullptr);
    constexpr int question_signal = 64;
    const pid_t other = forked([&] { return ::kill(witness.pid(), question_signal); });
    EXPECT_EQ(status_of(other), 0);
    const int question = witness.ask();
    pollfd readable{witness.fd(), POLLIN, 0};
    while (!witness.answered(question)) {
      ASSERT_EQ(::poll(&readable, 1, static_cast<int>(kHangSeconds) * 1000), 1);
      witness.listen();
    }
    EXPECT_TRUE(witness.saw({question_signal, false, other}, Instant()));
    EXPECT_FALSE(witness.answered(question + 1));
  });
}

TEST(Witness, AKilledWitnessIsNotWaitedFor) {
  in_group([] {
    Witness witness(0, nullptr);
    ::kill(witness.pid(), SIGKILL);
    status_of(witness.pid());
    listen_to(witness);
    EXPECT_FALSE(saw(witness, SIGTERM));
  });
}

TEST(Witness, HoldsNoPipeOpen) {
  in_group([] {
    Pipe pipe;
    const Witness witness(0, nullptr);
    pipe.write_end.reset();
    EXPECT_EQ(pipe.read(), "");
  });
}

TEST(Witness, LeavesOurSignalMaskAsItWas) {
  in_group([] {
    sigset_t before;
    sigset_t after;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR1);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    const Witness witness(0, nullptr);
    ::sigprocmask(SIG_SETMASK, nullptr, &after);
    EXPECT_EQ(::sigismember(&after, SIGUSR1), 1);
    EXPECT_EQ(::sigismember(&after, SIGTERM), 0);
  });
}

TEST(Witness, EndsWithUs) {
  in_group([] {
    pid_t witness = 0;
    {
      const Witness short_lived(0, nullptr);
      witness = short_lived.pid();
    }
    EXPECT_EQ(::waitpid(witness, nullptr, WNOHANG), -1);
  });
}

TEST(Witness, DoesNotOutliveAParentThatWasKilled) {
  in_child([] {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    Pipe name;
    const pid_t parent = forked([&] {
      ::setpgid(0, 0);
      const Witness witness(0, nullptr);
      const pid_t pid = witness.pid();
      EXPECT_EQ(::write(name.write_end.get(), &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
      return ::kill(::getpid(), SIGKILL);
    });
    pid_t witness = 0;
    ASSERT_EQ(::read(name.read_end.get(), &witness, sizeof witness),
              static_cast<ssize_t>(sizeof witness));
    EXPECT_EQ(WTERMSIG(status_of(parent)), SIGKILL);
    // It was reparented to us.
    const int status = status_of(witness);
    EXPECT_TRUE(WIFSIGNALED(status) || WIFEXITED(status));
  });
}

}  // namespace
}  // namespace redlock::guard
