#include "child/tree.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <thread>

#include "in_child.hpp"

namespace redlock::child {
namespace {

using namespace testing;

bool contains(const std::vector<pid_t>& pids, pid_t pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

void expect_no_children() {
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1);
  EXPECT_EQ(errno, ECHILD);
}

/// Runs the script until it has written so many lines, kills it as a whole, and sees it dead.
void expect_killed(const std::string& script, int lines) {
  in_child([&] {
    ProcessTree tree;
    Running command(script, lines);
    EXPECT_EQ(tree.descendants().empty(), false);
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(); }));
    EXPECT_EQ(command.rest(), "");
    expect_no_children();
    EXPECT_TRUE(tree.descendants().empty());
  });
}

TEST(ProcessTree, NothingStartedMeansNothingLeft) {
  in_child([] {
    ProcessTree tree;
    EXPECT_TRUE(tree.descendants().empty());
    EXPECT_EQ(tree.signal(SIGTERM), 0U);
    EXPECT_FALSE(tree.reap());
    EXPECT_TRUE(tree.kill_and_reap());
  });
}

TEST(ProcessTree, KillsChildrenOfAShell) {
  expect_killed("(echo a; sleep 1000; :) & (echo b; (echo c; sleep 1000; :) & sleep 1000; :) & echo d; wait", 4);
}

TEST(ProcessTree, KillsADaemonInASessionOfItsOwn) {
  expect_killed("setsid sh -c 'echo a; sleep 1000; :' & echo b; wait", 2);
}

TEST(ProcessTree, KillsADoubleForkedOrphan) {
  expect_killed("(setsid sh -c 'echo a; sleep 1000; :' &) ; exit 0", 1);
}

TEST(ProcessTree, KillsWhatIgnoresTerm) {
  expect_killed("trap '' TERM HUP INT; echo a; sleep 1000; :", 1);
}

TEST(ProcessTree, KillsAStoppedProcess) {
  expect_killed("echo a; kill -STOP $$; :", 1);
}

TEST(ProcessTree, KillsWhatForksAllTheTime) {
  expect_killed("f() { echo a; while :; do (sleep 0.01) & (:); wait; done; }; f & f & f & (f &) ; wait", 4);
}

TEST(ProcessTree, ListsParentsBeforeChildren) {
  in_child([] {
    ProcessTree tree;
    const Running command("(sh -c 'echo $$; sleep 1000; :') & wait", 1);
    const auto pids = tree.descendants();
    const auto parent = std::find(pids.begin(), pids.end(), command.pid());
    ASSERT_NE(parent, pids.end());
    EXPECT_NE(std::find(parent, pids.end(), command.pid_in_line(0)), pids.end());
    EXPECT_FALSE(contains(pids, ::getpid()));
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(); }));
  });
}

TEST(ProcessTree, ZombiesAreNotLiving) {
  in_child([] {
    ProcessTree tree;
    const pid_t child = started(shell("exit 0"));
    EXPECT_TRUE(eventually([&] { return state_of(child) == 'Z'; }));
    EXPECT_TRUE(tree.descendants().empty());
    EXPECT_EQ(tree.signal(SIGTERM), 0U);
  });
}

TEST(ProcessTree, AProcessWhoseFirstThreadEndedIsLiving) {
  in_child([] {
    ProcessTree tree;
    const pid_t child = forked([] {
      std::thread([] { ::sleep(kHangSeconds); }).detach();
      return static_cast<int>(::syscall(SYS_exit, 0));  // only this thread; pthread_exit would unwind through the test
    });
    EXPECT_TRUE(eventually([&] { return state_of(child) == 'Z'; }));
    EXPECT_TRUE(contains(tree.descendants(), child));
    EXPECT_FALSE(tree.reap());
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(); }));
  });
}

TEST(ProcessTree, FindsChildrenOfOtherThreads) {
  in_child([] {
    ProcessTree tree;
    Pipe hold;
    Pipe started_by_thread;
    std::thread thread([&] {
      const Running command("echo up; sleep 1000; :", 1);
      EXPECT_EQ(::write(started_by_thread.write_end.get(), "x", 1), 1);
      hold.read(1);
    });
    EXPECT_EQ(started_by_thread.read(1), "x");
    EXPECT_FALSE(tree.descendants().empty());
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(); }));
    hold.write_end.reset();
    thread.join();
  });
}

TEST(ProcessTree, NameWithParenthesesDoesNotConfuse) {
  in_child([] {
    ProcessTree tree;
    Pipe ready;
    const pid_t child = forked([&] {
      ::prctl(PR_SET_NAME, "x) Z 1 (y\n");
      EXPECT_EQ(::write(ready.write_end.get(), "x", 1), 1);
      return ::pause();
    });
    EXPECT_EQ(ready.read(1), "x");
    EXPECT_EQ(tree.descendants(), std::vector<pid_t>{child});
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(); }));
  });
}

TEST(ProcessTree, SignalReachesEverybody) {
  in_child([] {
    ProcessTree tree;
    Running command("(setsid sleep 1000 &) ; (sleep 1000 &) ; echo up; sleep 1000; :", 1);
    EXPECT_TRUE(eventually([&] { return tree.descendants().size() == 4; }));
    EXPECT_EQ(tree.signal(0), 4U);
    EXPECT_EQ(tree.signal(SIGTERM), 4U);
    EXPECT_EQ(command.rest(), "");
  });
}

TEST(ProcessTree, TermWakesAStoppedProcess) {
  in_child([] {
    ProcessTree tree;
    const Running command("trap 'exit 5' TERM; echo up; kill -STOP $$; exit 6", 1);
    EXPECT_TRUE(eventually([&] { return state_of(command.pid()) == 'T'; }));
    EXPECT_EQ(tree.signal(SIGTERM), 1U);
    EXPECT_EQ(WEXITSTATUS(status_of(command.pid())), 5);
  });
}

TEST(ProcessTree, StopStopsAndAChangedWindowWakesNobody) {
  in_child([] {
    ProcessTree tree;
    const Running command("echo up; exec sleep 1000", 1);
    EXPECT_EQ(tree.signal(SIGSTOP), 1U);
    int status = 0;
    EXPECT_EQ(::waitpid(command.pid(), &status, WUNTRACED), command.pid());
    EXPECT_TRUE(WIFSTOPPED(status));
    EXPECT_EQ(tree.signal(SIGWINCH), 1U);
    EXPECT_EQ(::waitpid(command.pid(), &status, WCONTINUED | WNOHANG), 0);
    EXPECT_EQ(tree.signal(SIGCONT), 1U);
    EXPECT_EQ(::waitpid(command.pid(), &status, WCONTINUED), command.pid());
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(); }));
  });
}

TEST(ProcessTree, ReapHandsOutTheStatus) {
  in_child([] {
    ProcessTree tree;
    const pid_t child = started(shell("exit 7"));
    std::optional<Ended> ended;
    EXPECT_TRUE(eventually([&] { return (ended = tree.reap()).has_value(); }));
    EXPECT_EQ(ended->pid, child);
    EXPECT_EQ(WEXITSTATUS(ended->status), 7);
    EXPECT_FALSE(tree.reap());
  });
}

TEST(ProcessTree, ReapHandsOutOrphans) {
  in_child([] {
    ProcessTree tree;
    const Running command("(sh -c 'echo $$; exit 4' &) ; exit 0", 1);
    const pid_t orphan = command.pid_in_line(0);
    std::optional<Ended> ended;
    EXPECT_TRUE(eventually([&] { return (ended = tree.reap()).has_value() && ended->pid == orphan; }));
    EXPECT_EQ(WEXITSTATUS(ended->status), 4);
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(); }));
  });
}

TEST(ProcessTree, KillKeepsTheCommandsStatusForReap) {
  in_child([] {
    ProcessTree tree;
    const Running command("(sleep 1000; :) & echo up; exit 7", 1);
    EXPECT_TRUE(eventually([&] { return state_of(command.pid()) == 'Z'; }));
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(); }));
    int seen = 0;
    while (const auto ended = tree.reap()) {
      if (ended->pid != command.pid()) continue;
      EXPECT_EQ(WEXITSTATUS(ended->status), 7);
      ++seen;
    }
    EXPECT_EQ(seen, 1);
  });
}

TEST(ProcessTree, ChildrenWeWereBornWithAreLeftAlone) {
  in_child([] {
    const Running helper("echo up; exec sleep 1000", 1);
    const pid_t dead = started(shell("exit 9"));
    EXPECT_TRUE(eventually([&] { return state_of(dead) == 'Z'; }));
    ProcessTree tree;
    EXPECT_TRUE(tree.descendants().empty());

    const Running command("(setsid sh -c 'echo a; sleep 1000; :' &) ; echo b; sleep 1000; :", 2);
    EXPECT_FALSE(tree.reap());
    EXPECT_FALSE(contains(tree.descendants(), helper.pid()));
    EXPECT_TRUE(contains(tree.descendants(), command.pid()));
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(); }));
    bool seen = false;
    while (const auto ended = tree.reap()) seen |= ended->pid == command.pid() && WTERMSIG(ended->status) == SIGKILL;
    EXPECT_TRUE(seen);

    EXPECT_EQ(WEXITSTATUS(status_of(dead)), 9);
    EXPECT_EQ(::waitpid(helper.pid(), nullptr, WNOHANG), 0);
    ::kill(helper.pid(), SIGKILL);
    status_of(helper.pid());
  });
}

TEST(ProcessTree, WhatMayNotBeSignalledIsLeftOutAndNotDead) {
  in_child([] {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to make a process that we then may not signal";
    ProcessTree tree;
    Pipe hold;
    const pid_t untouchable = forked([&] {
      hold.write_end.reset();
      hold.read(1);
      return 3;
    });
    hold.read_end.reset();
    become_ordinary();
    EXPECT_EQ(tree.signal(SIGTERM), 0U);
    EXPECT_FALSE(tree.kill_and_reap());
    EXPECT_EQ(tree.descendants(), std::vector<pid_t>{untouchable});
    hold.write_end.reset();
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(); }));
    const auto ended = tree.reap();
    ASSERT_TRUE(ended);
    EXPECT_EQ(WEXITSTATUS(ended->status), 3);
  });
}

TEST(ProcessTree, WithoutProcItKillsNobodyAndClaimsNothing) {
  in_child([] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/proc", "tmpfs", 0, nullptr) != 0) {
      GTEST_SKIP() << "needs root to hide /proc";
    }
    ProcessTree tree;
    const Running command("echo up; exec sleep 1000", 1);
    EXPECT_TRUE(tree.descendants().empty());
    EXPECT_FALSE(tree.kill_and_reap());
    ::kill(command.pid(), SIGKILL);
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(); }));
  });
}

TEST(ProcessTree, ProcOfAnOuterNamespaceIsNotBelieved) {
  in_child([] {
    if (::unshare(CLONE_NEWPID) != 0) GTEST_SKIP() << "needs root for a pid namespace";
    EXPECT_EQ(status_of(forked([] {
                ProcessTree tree;
                const Running command("echo up; exec sleep 1000", 1);
                EXPECT_TRUE(tree.descendants().empty());
                EXPECT_FALSE(tree.kill_and_reap());
                ::kill(command.pid(), SIGKILL);
                EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(); }));
                return ::testing::Test::HasFailure() ? 1 : 0;
              })),
              0);
  });
}

}  // namespace
}  // namespace redlock::child
