#include "proc/watched_process.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <thread>

#include "../in_child.hpp"
#include "proc/cpu_share.hpp"
#include "proc/descendants.hpp"

namespace redlock::proc {
namespace {

using namespace testing;

/// Opens the process to watch, which must exist. Its orphans are reparented to us, so that nothing
/// is left when the test ends.
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

bool held_still(WatchedProcess& process) {
  return eventually([&] { return process.hold_still(Instant::max()); });
}

bool anything_lives(const WatchedProcess& process) {
  return !process.living().empty();
}

bool killed(WatchedProcess& process) {
  held_still(process);
  return eventually([&] {
    process.kill(Instant::max());
    return !anything_lives(process);
  });
}

/// Sends the stop signal as a script whose lease is lost gets it.
void terminate(WatchedProcess& process) {
  EXPECT_TRUE(held_still(process));
  process.signal(SIGTERM, WatchedProcess::Reach::stopped);
}

TEST(WatchedProcess, AKilledProcessGetsTheCpuToDie) {
  in_child([] {
    const Running command("echo up; exec sleep 1000", 1);
    WatchedProcess process = watch(command.pid());
    claim_cpu_share();
    if (!lends_real_time()) GTEST_SKIP() << "without real-time priorities there is nothing to have";
    sched_param own{};
    ASSERT_EQ(::sched_getparam(0, &own), 0);
    EXPECT_TRUE(held_still(process));
    process.kill(Instant::max());
    sched_param lent{};
    EXPECT_EQ(::sched_getparam(command.pid(), &lent), 0) << "not reaped yet";
    EXPECT_EQ(lent.sched_priority, own.sched_priority - 1);
  });
}

TEST(WatchedProcess, RefusesAProcessThatDoesNotExist) {
  const pid_t gone = forked([] { return 0; });
  status_of(gone);
  EXPECT_EQ(refusal(gone), "process " + std::to_string(gone) + ": there is no such process");
  EXPECT_NE(refusal(-1).find("there is no such process"), std::string::npos);
}

TEST(WatchedProcess, RefusesAProcessThatMayNotBeSignalled) {
  in_child([] {
    if (::geteuid() != 0)
      GTEST_SKIP() << "needs root to make a process that we then may not signal";
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

TEST(WatchedProcess, ShowsItsEndBeforeItIsReaped) {
  in_child([] {
    Running command("echo up; exec sleep 1000", 1);
    const WatchedProcess process = watch(command.pid());
    EXPECT_FALSE(process.ended());
    EXPECT_TRUE(anything_lives(process));
    pollfd readable{process.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&readable, 1, 0), 0);
    ::kill(command.pid(), SIGKILL);
    EXPECT_EQ(::poll(&readable, 1, static_cast<int>(kHangSeconds) * 1000), 1);
    EXPECT_TRUE(process.ended());
    EXPECT_FALSE(anything_lives(process));
    EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGKILL);
    EXPECT_TRUE(process.ended());
  });
}

TEST(WatchedProcess, KillingOneThatEndedByItselfTouchesNoProcess) {
  in_child([] {
    const Directory directory;
    Running command("(echo up; until [ -e " + directory.path() +
                        "/end ]; do sleep 0.01; done; echo alive) & exit",
                    1);
    WatchedProcess process = watch(command.pid());
    EXPECT_TRUE(eventually([&] { return process.ended(); }));
    EXPECT_TRUE(killed(process));
    (void)directory.file("end", "", 0600);
    EXPECT_EQ(command.rest(), "alive\n");
  });
}

TEST(WatchedProcess, SignalReachesItAndItsDescendantsAndWakesThem) {
  in_child([] {
    Running command(
        "trap 'echo told; exit' TERM; (trap 'echo told; exit' TERM; echo up; while :; do sleep "
        "0.01; done) & "
        "sh -c \"trap 'echo told; exit' TERM; echo up; kill -STOP \\$\\$; while :; do sleep 0.01; "
        "done\" & wait",
        2);
    WatchedProcess process = watch(command.pid());
    const auto one_is_stopped = [&] {
      const auto family = living_descendants({command.pid()});
      return std::any_of(family.begin(), family.end(),
                         [](pid_t pid) { return state_of(pid) == 'T'; });
    };
    EXPECT_TRUE(eventually(one_is_stopped));
    terminate(process);
    EXPECT_EQ(command.rest(), "told\ntold\ntold\n");
  });
}

/// Runs the script until it has written this many lines, then kills its whole tree and sees it
/// dead.
void expect_watched_killed(const std::string& script, int lines) {
  in_child([&] {
    Running command(script, lines);
    WatchedProcess process = watch(command.pid());
    EXPECT_TRUE(killed(process));
    EXPECT_FALSE(anything_lives(process));
    EXPECT_EQ(command.rest(), "");
    EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGKILL);
  });
}

TEST(WatchedProcess, KillsTheProcess) {
  expect_watched_killed("echo up; exec sleep 1000", 1);
}

TEST(WatchedProcess, KillsItsDescendants) {
  expect_watched_killed(
      "(echo up; sleep 1000) & setsid sh -c 'echo up; (sleep 1000; :) & sleep 1000; :' & wait", 2);
}

TEST(WatchedProcess, KillsAProcessThatIgnoresSignals) {
  expect_watched_killed("trap '' HUP INT TERM; (echo up; sleep 1000; :) & wait", 1);
}

TEST(WatchedProcess, KillsAStoppedProcess) {
  expect_watched_killed("sh -c 'echo up; kill -STOP $$; exit' & echo up; kill -STOP $$; exit", 2);
}

TEST(WatchedProcess, KillsAProcessThatForksAllTheTime) {
  expect_watched_killed("echo up; while :; do (sleep 0.01) & done", 1);
}

TEST(WatchedProcess, KillsDescendantsThatLostTheirParentAfterTheSignal) {
  in_child([] {
    Running command("(trap '' TERM; echo up; while :; do sleep 1000; done) & echo up; wait", 2);
    WatchedProcess process = watch(command.pid());
    terminate(process);
    EXPECT_TRUE(eventually([&] { return process.ended(); }));
    EXPECT_TRUE(anything_lives(process));
    EXPECT_TRUE(killed(process));
    EXPECT_EQ(command.rest(), "");
  });
}

TEST(WatchedProcess, KillsDescendantsForkedAfterTheSignal) {
  in_child([] {
    Running command(
        "(trap '(trap \"\" TERM; echo down; sleep 1000; :) &' TERM; echo up; while :; do wait; "
        "done) & echo up; wait",
        2);
    WatchedProcess process = watch(command.pid());
    terminate(process);
    EXPECT_TRUE(eventually([&] { return process.ended(); }));
    EXPECT_EQ(command.next_line(), "down");
    EXPECT_TRUE(killed(process));
    EXPECT_EQ(command.rest(), "");
  });
}

/// A process with this much memory that forks as fast as it can. Its children stay until they are
/// killed, and all of them hold the pipe open.
struct ForkingProcess {
  explicit ForkingProcess(std::size_t megabytes) {
    Pipe ready;
    pid = forked([&] {
      // A fork takes longer the more pages there are.
      std::vector<char> memory(megabytes << 20, 'x');
      EXPECT_EQ(::write(ready.write_end.get(), memory.data(), 1), 1);
      for (int forks = 0; forks < 1000; ++forks) {
        if (::fork() == 0) {
          ::signal(SIGTERM, SIG_IGN);
          for (;;) ::pause();
        }
      }
      return ::pause();
    });
    life.write_end.reset();
    EXPECT_EQ(ready.read(1), "x");
    EXPECT_TRUE(eventually([&] { return living_descendants({pid}).size() >= 2; }));
  }

  Pipe life;
  pid_t pid;
};

void expect_no_child_lost(std::size_t megabytes) {
  for (int round = 0; round < 5 && !::testing::Test::HasFailure(); ++round) {
    in_child([megabytes] {
      ForkingProcess parent(megabytes);
      WatchedProcess process = watch(parent.pid);
      terminate(process);
      EXPECT_EQ(WTERMSIG(status_of(parent.pid)), SIGTERM);
      EXPECT_TRUE(killed(process));
      EXPECT_EQ(parent.life.read(), "");
    });
  }
}

TEST(WatchedProcess, HeldStillItLosesNoChildToTheSignal) {
  expect_no_child_lost(1);
}

TEST(WatchedProcess, HeldStillItLosesNoChildThatTakesLongToFork) {
  expect_no_child_lost(400);
}

TEST(WatchedProcess, KillLosesNoChildThatTakesLongToFork) {
  in_child([] {
    ForkingProcess parent(400);
    WatchedProcess process = watch(parent.pid);
    EXPECT_TRUE(killed(process));
    EXPECT_EQ(WTERMSIG(status_of(parent.pid)), SIGKILL);
    EXPECT_EQ(parent.life.read(), "");
  });
}

TEST(WatchedProcess, HeldStillItsThreadsForkNoMore) {
  in_child([] {
    Pipe life;
    const pid_t parent = forked([] {
      // Threads that end, are replaced all the time, and fork.
      const auto work = [](const auto& self, int depth) -> void {
        if (::fork() == 0) {
          ::signal(SIGTERM, SIG_IGN);
          for (;;) ::pause();
        }
        if (depth < 300) std::thread([self, depth] { self(self, depth + 1); }).detach();
      };
      std::thread([work] { work(work, 0); }).detach();
      for (;;) ::pause();
      return 0;
    });
    life.write_end.reset();
    WatchedProcess process = watch(parent);
    EXPECT_TRUE(eventually([&] { return living_descendants({parent}).size() >= 2; }));
    terminate(process);
    EXPECT_EQ(WTERMSIG(status_of(parent)), SIGTERM);
    EXPECT_TRUE(killed(process));
    EXPECT_EQ(life.read(), "");
  });
}

TEST(WatchedProcess, OneThatWaitsForAStoppedChildOfVforkIsHeldStill) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer forks where it is asked for vfork";
#endif
  in_child([] {
    Pipe life;
    Pipe up;
    const pid_t parent = forked([&] {
      if (::vfork() == 0) {
        (void)!::write(up.write_end.get(), "x", 1);
        for (;;) ::pause();
      }
      return ::pause();
    });
    life.write_end.reset();
    EXPECT_EQ(up.read(1), "x");
    EXPECT_TRUE(eventually([&] { return state_of(parent) == 'D'; }));
    WatchedProcess process = watch(parent);
    terminate(process);
    EXPECT_EQ(WTERMSIG(status_of(parent)), SIGTERM);
    EXPECT_EQ(life.read(), "");
  });
}

TEST(WatchedProcess, HoldStillEndsInTime) {
  in_child([] {
    Running command("echo up; exec sleep 1000", 1);
    WatchedProcess process = watch(command.pid());
    EXPECT_FALSE(process.hold_still(BootClock::now()));
    EXPECT_NE(state_of(command.pid()), 'T');
    process.signal(SIGTERM, WatchedProcess::Reach::stopped);
    EXPECT_FALSE(process.ended());
    process.signal(SIGTERM, WatchedProcess::Reach::known);
    EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGTERM);
  });
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
    terminate(process);
    EXPECT_EQ(WTERMSIG(status_of(parent)), SIGTERM);
    EXPECT_TRUE(killed(process));
    EXPECT_EQ(life.read(), "");
  });
}

TEST(WatchedProcess, AHolderBelowTheProcessSparesItself) {
  in_child([] {
    Pipe ready;
    Pipe word;
    const pid_t above = forked([&] {
      if (::fork() == 0) {
        auto process = WatchedProcess::open(::getppid());
        if (::fork() == 0) return ::pause();
        const bool dead = process && killed(*process);
        EXPECT_EQ(::write(word.write_end.get(), dead ? "dead" : "live", 4), 4);
        return 0;
      }
      return ::pause();
    });
    word.write_end.reset();
    // The process beside it is its own child, and dies as part of the tree.
    EXPECT_EQ(word.read(), "dead");
    EXPECT_EQ(WTERMSIG(status_of(above)), SIGKILL);
  });
}

TEST(WatchedProcess, WithoutProcItIsKilledAlone) {
  in_child([] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/proc", "tmpfs", 0, nullptr) != 0) {
      GTEST_SKIP() << "needs root to hide /proc";
    }
    Running command("trap '' TERM; echo up; while :; do sleep 0.01; done", 1);
    WatchedProcess process = watch(command.pid());
    EXPECT_FALSE(process.hold_still(Instant::max()));
    process.kill(Instant::max());
    EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGKILL);
    EXPECT_FALSE(anything_lives(process));
  });
}

}  // namespace
}  // namespace redlock::proc
