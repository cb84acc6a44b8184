#include "child/watched_process.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <thread>

#include "child/tree.hpp"
#include "child/descendants.hpp"
#include "in_child.hpp"

namespace redlock::child {
namespace {

using namespace testing;

/// The process to watch; it must be there. Orphans of it come to us, so that nothing is left when the test ends.
WatchedProcess watch(pid_t pid) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  auto process = WatchedProcess::open(pid);
  if (!process) ADD_FAILURE() << process.error();
  return std::move(process).value();
}

std::string refusal(pid_t pid) {
  const auto process = WatchedProcess::open(pid);
  EXPECT_FALSE(process);
  return process ? "" : process.error();
}

bool killed(WatchedProcess& process) {
  return eventually([&] { return process.kill(); });
}

TEST(WatchedProcess, OneThatIsNotThereIsRefused) {
  const pid_t gone = forked([] { return 0; });
  status_of(gone);
  EXPECT_EQ(refusal(gone), "process " + std::to_string(gone) + ": there is no such process");
  EXPECT_NE(refusal(-1).find("there is no such process"), std::string::npos);
}

TEST(WatchedProcess, OneThatMayNotBeSignalledIsRefused) {
  in_child([] {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to make a process that we then may not signal";
    Pipe hold;
    const pid_t untouchable = forked([&] {
      hold.write_end.reset();
      return static_cast<int>(hold.read(1).size());
    });
    become_ordinary();
    EXPECT_NE(refusal(untouchable).find("you may not signal it"), std::string::npos);
    hold.write_end.reset();
    EXPECT_EQ(status_of(untouchable), 0);
  });
}

TEST(WatchedProcess, TellsItsEndThoughNobodyHasReapedIt) {
  in_child([] {
    Running command("echo up; exec sleep 1000", 1);
    const WatchedProcess process = watch(command.pid());
    EXPECT_FALSE(process.ended());
    EXPECT_TRUE(process.anything_lives());
    pollfd readable{process.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&readable, 1, 0), 0);
    ::kill(command.pid(), SIGKILL);
    EXPECT_EQ(::poll(&readable, 1, static_cast<int>(kHangSeconds) * 1000), 1);
    EXPECT_TRUE(process.ended());
    EXPECT_FALSE(process.anything_lives());
    EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGKILL);
    EXPECT_TRUE(process.ended());
  });
}

TEST(WatchedProcess, KillingOneThatEndedByItselfTouchesNobody) {
  in_child([] {
    const Directory directory;
    Running command("(echo up; until [ -e " + directory.path() + "/end ]; do sleep 0.01; done; echo alive) & exit", 1);
    WatchedProcess process = watch(command.pid());
    EXPECT_TRUE(eventually([&] { return process.ended(); }));
    EXPECT_TRUE(process.kill());
    (void)directory.file("end", "", 0600);
    EXPECT_EQ(command.rest(), "alive\n");
  });
}

TEST(WatchedProcess, SignalReachesItAndItsDescendantsAndWakesThem) {
  in_child([] {
    Running command(
        "trap 'echo told; exit' TERM; (trap 'echo told; exit' TERM; echo up; while :; do sleep 0.01; done) & "
        "sh -c \"trap 'echo told; exit' TERM; echo up; kill -STOP \\$\\$; while :; do sleep 0.01; done\" & wait",
        2);
    WatchedProcess process = watch(command.pid());
    const auto one_is_stopped = [&] {
      const auto family = living_descendants({command.pid()});
      return std::any_of(family.begin(), family.end(), [](pid_t pid) { return state_of(pid) == 'T'; });
    };
    EXPECT_TRUE(eventually(one_is_stopped));
    process.signal(SIGTERM);
    EXPECT_EQ(command.rest(), "told\ntold\ntold\n");
  });
}

/// Runs the script until it has written so many lines, kills it as a whole, and sees it dead.
void expect_killed(const std::string& script, int lines) {
  in_child([&] {
    Running command(script, lines);
    WatchedProcess process = watch(command.pid());
    EXPECT_TRUE(killed(process));
    EXPECT_FALSE(process.anything_lives());
    EXPECT_EQ(command.rest(), "");
    EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGKILL);
  });
}

TEST(WatchedProcess, KillTakesIt) {
  expect_killed("echo up; exec sleep 1000", 1);
}

TEST(WatchedProcess, KillTakesItsDescendants) {
  expect_killed("(echo up; sleep 1000) & setsid sh -c 'echo up; (sleep 1000; :) & sleep 1000; :' & wait", 2);
}

TEST(WatchedProcess, KillTakesWhatIgnoresSignals) {
  expect_killed("trap '' HUP INT TERM; (echo up; sleep 1000; :) & wait", 1);
}

TEST(WatchedProcess, KillTakesWhatIsStopped) {
  expect_killed("sh -c 'echo up; kill -STOP $$; exit' & echo up; kill -STOP $$; exit", 2);
}

TEST(WatchedProcess, KillTakesWhatForksAllTheTime) {
  expect_killed("echo up; while :; do (sleep 0.01) & done", 1);
}

TEST(WatchedProcess, KillTakesWhatLostItsParentSinceTheSignal) {
  in_child([] {
    Running command("(trap '' TERM; echo up; while :; do sleep 1000; done) & echo up; wait", 2);
    WatchedProcess process = watch(command.pid());
    process.signal(SIGTERM);
    EXPECT_TRUE(eventually([&] { return process.ended(); }));
    EXPECT_TRUE(process.anything_lives());
    EXPECT_TRUE(killed(process));
    EXPECT_EQ(command.rest(), "");
  });
}

TEST(WatchedProcess, KillTakesWhatTheseForkedSinceTheSignal) {
  in_child([] {
    Running command("(trap '(trap \"\" TERM; echo down; sleep 1000; :) &' TERM; echo up; while :; do wait; done) & echo up; wait", 2);
    WatchedProcess process = watch(command.pid());
    process.signal(SIGTERM);
    EXPECT_TRUE(eventually([&] { return process.ended(); }));
    EXPECT_EQ(command.next_line(), "down");
    EXPECT_TRUE(killed(process));
    EXPECT_EQ(command.rest(), "");
  });
}

TEST(WatchedProcess, HeldStillItLosesNoChildToTheSignal) {
  for (int round = 0; round < 5; ++round) {
    in_child([] {
      // A thread of it forks as fast as it can, and whatever it forks stays until it is killed.
      Pipe life;
      const pid_t parent = forked([] {
        for (int forks = 0; forks < 2000; ++forks) {
          if (::fork() == 0) {
            ::signal(SIGTERM, SIG_IGN);
            return ::pause();
          }
          ::usleep(200);
        }
        return ::pause();
      });
      life.write_end.reset();
      WatchedProcess process = watch(parent);
      ::usleep(20'000);
      process.hold_still();
      process.signal(SIGTERM);
      EXPECT_EQ(WTERMSIG(status_of(parent)), SIGTERM);
      EXPECT_TRUE(killed(process));
      EXPECT_EQ(life.read(), "");
    });
  }
}

TEST(WatchedProcess, OneWhoseFirstThreadHasEndedLives) {
  in_child([] {
    Pipe life;
    const pid_t parent = forked([&life] {
      const pid_t inner = ::fork();
      if (inner == 0) {
        std::thread([&life] {
          EXPECT_EQ(::write(life.write_end.get(), "x", 1), 1);
          ::pause();
        }).detach();
        ::syscall(SYS_exit, 0);
      }
      return ::pause();
    });
    life.write_end.reset();
    EXPECT_EQ(life.read(1), "x");
    WatchedProcess process = watch(parent);
    process.signal(SIGTERM);
    EXPECT_EQ(WTERMSIG(status_of(parent)), SIGTERM);
    EXPECT_TRUE(killed(process));
    EXPECT_EQ(life.read(), "");
  });
}

TEST(WatchedProcess, WhoWatchesFromBelowSparesHimself) {
  in_child([] {
    Pipe ready;
    Pipe word;
    const pid_t above = forked([&] {
      if (::fork() == 0) {
        auto process = WatchedProcess::open(::getppid());
        if (::fork() == 0) return ::pause();
        const bool dead = process && eventually([&] { return process->kill(); });
        EXPECT_EQ(::write(word.write_end.get(), dead ? "dead" : "live", 4), 4);
        return 0;
      }
      return ::pause();
    });
    word.write_end.reset();
    // The one beside him is his own child, and dies as part of the tree.
    EXPECT_EQ(word.read(), "dead");
    EXPECT_EQ(WTERMSIG(status_of(above)), SIGKILL);
  });
}

TEST(WatchedProcess, WithoutProcItIsKilledAlone) {
  in_child([] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/proc", "tmpfs", 0, nullptr) != 0) {
      GTEST_SKIP() << "needs root to hide /proc";
    }
    Running command("trap '' TERM; echo up; while :; do sleep 0.01; done", 1);
    WatchedProcess process = watch(command.pid());
    process.signal(SIGTERM);
    EXPECT_FALSE(process.ended());
    EXPECT_TRUE(killed(process));
    EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGKILL);
  });
}

}  // namespace
}  // namespace redlock::child
