#include "guard/tree.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <thread>

#include "commands.hpp"
#include "proc/cpu_share.hpp"

namespace redlock::guard {
namespace {

using namespace testing;

/// No process can be reached in one call, so these tests cover the walk, unless they set a target.
CommandTarget no_target;

bool contains(const std::vector<pid_t>& pids, pid_t pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

void expect_no_children() {
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1);
  EXPECT_EQ(errno, ECHILD);
}

/// Runs the script until it has written this many lines, then kills its whole tree and sees it
/// dead.
void expect_killed(const std::string& script, int lines) {
  in_child([&] {
    ProcessTree tree(no_target);
    Running command(script, lines);
    EXPECT_EQ(tree.descendants().empty(), false);
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
    EXPECT_EQ(command.rest(), "");
    expect_no_children();
    EXPECT_TRUE(tree.descendants().empty());
  });
}

TEST(ProcessTree, NothingStartedMeansNothingLeft) {
  in_child([] {
    ProcessTree tree(no_target);
    EXPECT_TRUE(tree.descendants().empty());
    EXPECT_FALSE(tree.reap());
    EXPECT_TRUE(tree.kill_and_reap(Instant::max()));
  });
}

TEST(ProcessTree, KillsChildrenOfAShell) {
  expect_killed(
      "(echo a; sleep 1000; :) & (echo b; (echo c; sleep 1000; :) & sleep 1000; :) & echo d; wait",
      4);
}

TEST(ProcessTree, KillsADaemonInASessionOfItsOwn) {
  expect_killed("setsid sh -c 'echo a; sleep 1000; :' & echo b; wait", 2);
}

TEST(ProcessTree, KillsADoubleForkedOrphan) {
  expect_killed("(setsid sh -c 'echo a; sleep 1000; :' &) ; exit 0", 1);
}

TEST(ProcessTree, KillsAProcessThatIgnoresTerm) {
  expect_killed("trap '' TERM HUP INT; echo a; sleep 1000; :", 1);
}

TEST(ProcessTree, KillsAStoppedProcess) {
  expect_killed("echo a; kill -STOP $$; :", 1);
}

TEST(ProcessTree, KillsAProcessThatForksAllTheTime) {
  expect_killed(
      "f() { echo a; while :; do (sleep 0.01) & (:); wait; done; }; f & f & f & (f &) ; wait", 4);
}

TEST(ProcessTree, ListsParentsBeforeChildren) {
  in_child([] {
    ProcessTree tree(no_target);
    const Running command("(sh -c 'echo $$; sleep 1000; :') & wait", 1);
    const auto pids = tree.descendants();
    const auto parent = std::find(pids.begin(), pids.end(), command.pid());
    ASSERT_NE(parent, pids.end());
    EXPECT_NE(std::find(parent, pids.end(), command.pid_in_queue(0)), pids.end());
    EXPECT_FALSE(contains(pids, ::getpid()));
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
  });
}

TEST(ProcessTree, ZombiesAreNotLiving) {
  in_child([] {
    ProcessTree tree(no_target);
    const pid_t child = started(shell("exit 0"));
    EXPECT_TRUE(eventually([&] { return state_of(child) == 'Z'; }));
    EXPECT_TRUE(tree.descendants().empty());
  });
}

TEST(ProcessTree, AProcessWhoseFirstThreadEndedIsLiving) {
  in_child([] {
    ProcessTree tree(no_target);
    const pid_t child = forked([] {
      std::thread([] { ::sleep(kHangSeconds); }).detach();
      return static_cast<int>(
          ::syscall(SYS_exit, 0));  // only this thread; pthread_exit would unwind through the test
    });
    EXPECT_TRUE(eventually([&] { return state_of(child) == 'Z'; }));
    EXPECT_TRUE(contains(tree.descendants(), child));
    EXPECT_FALSE(tree.reap());
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
  });
}

TEST(ProcessTree, FindsChildrenOfOtherThreads) {
  in_child([] {
    ProcessTree tree(no_target);
    Pipe hold;
    Pipe started_by_thread;
    std::thread thread([&] {
      const Running command("echo up; sleep 1000; :", 1);
      EXPECT_EQ(::write(started_by_thread.write_end.get(), "x", 1), 1);
      hold.read(1);
    });
    EXPECT_EQ(started_by_thread.read(1), "x");
    EXPECT_FALSE(tree.descendants().empty());
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
    hold.write_end.reset();
    thread.join();
  });
}

TEST(ProcessTree, NameWithParenthesesDoesNotConfuse) {
  in_child([] {
    ProcessTree tree(no_target);
    Pipe ready;
    const pid_t child = forked([&] {
      ::prctl(PR_SET_NAME, "x) Z 1 (y\n");
      EXPECT_EQ(::write(ready.write_end.get(), "x", 1), 1);
      return ::pause();
    });
    EXPECT_EQ(ready.read(1), "x");
    EXPECT_EQ(tree.descendants(), std::vector<pid_t>{child});
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
  });
}

TEST(ProcessTree, SignalReachesAllProcesses) {
  in_child([] {
    ProcessTree tree(no_target);
    Running command("(setsid sleep 1000 &) ; (sleep 1000 &) ; echo up; sleep 1000; :", 1);
    EXPECT_TRUE(eventually([&] { return tree.descendants().size() == 4; }));
    tree.signal(SIGTERM, Instant::max());
    EXPECT_EQ(command.rest(), "");
  });
}

TEST(ProcessTree, TermWakesAStoppedProcess) {
  in_child([] {
    ProcessTree tree(no_target);
    const Running command("trap 'exit 5' TERM; echo up; kill -STOP $$; exit 6", 1);
    EXPECT_TRUE(eventually([&] { return state_of(command.pid()) == 'T'; }));
    tree.signal(SIGTERM, Instant::max());
    EXPECT_EQ(WEXITSTATUS(status_of(command.pid())), 5);
  });
}

TEST(ProcessTree, StopStopsAndAResizedWindowWakesNoProcess) {
  in_child([] {
    ProcessTree tree(no_target);
    const Running command("echo up; exec sleep 1000", 1);
    tree.signal(SIGSTOP, Instant::max());
    int status = 0;
    EXPECT_EQ(::waitpid(command.pid(), &status, WUNTRACED), command.pid());
    EXPECT_TRUE(WIFSTOPPED(status));
    tree.signal(SIGWINCH, Instant::max());
    EXPECT_EQ(::waitpid(command.pid(), &status, WCONTINUED | WNOHANG), 0);
    tree.signal(SIGCONT, Instant::max());
    EXPECT_EQ(::waitpid(command.pid(), &status, WCONTINUED), command.pid());
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
  });
}

TEST(ProcessTree, ReapReturnsTheStatus) {
  in_child([] {
    ProcessTree tree(no_target);
    const pid_t child = started(shell("exit 7"));
    std::optional<Ended> ended;
    EXPECT_TRUE(eventually([&] { return (ended = tree.reap()).has_value(); }));
    EXPECT_EQ(ended->pid, child);
    EXPECT_EQ(WEXITSTATUS(ended->status), 7);
    EXPECT_FALSE(tree.reap());
  });
}

TEST(ProcessTree, ReapReturnsOrphans) {
  in_child([] {
    ProcessTree tree(no_target);
    const Running command("(sh -c 'echo $$; exit 4' &) ; exit 0", 1);
    const pid_t orphan = command.pid_in_queue(0);
    std::optional<Ended> ended;
    EXPECT_TRUE(
        eventually([&] { return (ended = tree.reap()).has_value() && ended->pid == orphan; }));
    EXPECT_EQ(WEXITSTATUS(ended->status), 4);
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
  });
}

TEST(ProcessTree, KillKeepsTheCommandsStatusForReap) {
  in_child([] {
    ProcessTree tree(no_target);
    const Running command("(sleep 1000; :) & echo up; exit 7", 1);
    EXPECT_TRUE(eventually([&] { return state_of(command.pid()) == 'Z'; }));
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
    int seen = 0;
    while (const auto ended = tree.reap()) {
      if (ended->pid != command.pid()) continue;
      EXPECT_EQ(WEXITSTATUS(ended->status), 7);
      ++seen;
    }
    EXPECT_EQ(seen, 1);
  });
}

/// A command that leads a process group of its own; its processes write this many lines once they
/// are up.
struct InOwnGroup {
  InOwnGroup(const std::string& script, int lines) {
    {
      const StdoutTo redirected(output);
      pid = started(shell(script), InheritedSignals::capture(), /*own_group=*/true);
    }
    output.write_end.reset();
    for (int line = 0; line < lines; ++line) output.read_line();
    target.own_group = ::getpgid(pid);
    target.command = pid;
  }

  Pipe output;
  pid_t pid = 0;
  CommandTarget target;
};

TEST(ProcessTree, OneCallReachesTheGroupWhenThereIsNoTimeForAWalk) {
  in_child([] {
    InOwnGroup command("(sleep 1000; :) & (sleep 1000; :) & echo up; wait", 1);
    ProcessTree tree(command.target);
    tree.kill(Instant());
    EXPECT_EQ(command.output.read(), "") << "all that hold the pipe are dead";
  });
}

TEST(ProcessTree, TheStopSignalReachesTheGroupWhenThereIsNoTimeForAWalk) {
  in_child([] {
    InOwnGroup command("(sleep 1000; :) & (sleep 1000; :) & echo up; wait", 1);
    ProcessTree tree(command.target);
    tree.signal(SIGTERM, Instant());
    EXPECT_EQ(command.output.read(), "");
  });
}

/// How many instances of this blocked signal are pending for the process, once there is one.
/// Real-time signals are queued, so each counts.
int number_waiting(int signal) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  int number = 0;
  timespec timeout{kHangSeconds, 0};
  while (::sigtimedwait(&set, nullptr, &timeout) == signal) {
    ++number;
    timeout.tv_sec = 0;
  }
  return number;
}

TEST(ProcessTree, TheStopSignalReachesEachProcessOnceInsideTheGroupAndOutside) {
  in_child([] {
    const int signal = SIGRTMIN + 1;
    Pipe ready;
    Pipe sent;
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, signal);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    const auto counts = [&] {
      sent.write_end.reset();
      EXPECT_EQ(::write(ready.write_end.get(), "r", 1), 1);
      sent.read();
      return number_waiting(signal);
    };
    CommandTarget target;
    const pid_t command = forked([&] {
      ::setpgid(0, 0);
      const pid_t outside = forked([&] {
        ::setsid();
        return counts();
      });
      const int inside = counts();
      return 10 * inside + WEXITSTATUS(status_of(outside));
    });
    EXPECT_EQ(ready.read(2), "rr");
    target.own_group = command;
    target.command = command;
    ProcessTree(target).signal(signal, Instant::max());
    sent.write_end.reset();
    EXPECT_EQ(WEXITSTATUS(status_of(command)), 11);
  });
}

TEST(ProcessTree, AGroupWithADeadLeaderIsKilledWithItsFirstMemberFound) {
  in_child([] {
    InOwnGroup command("(sleep 1000; :) & (sleep 1000; :) & echo up; wait", 1);
    ProcessTree tree(command.target);
    ::kill(command.pid, SIGKILL);
    EXPECT_TRUE(eventually([&] { return tree.reap().has_value(); }));
    EXPECT_EQ(command.target.command, 0) << "its number may be that of another process";
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
    EXPECT_EQ(command.output.read(), "");
  });
}

TEST(ProcessTree, AWalkEndsInTime) {
  in_child([] {
    ProcessTree tree(no_target);
    const Running command("echo up; exec sleep 1000", 1);
    tree.signal(SIGKILL, Instant());
    EXPECT_EQ(::waitpid(command.pid(), nullptr, WNOHANG), 0) << "there was no time to find it";
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
  });
}

TEST(ProcessTree, DistinguishesASlowKillFromAnUnkillableProcess) {
  in_child([] {
    ProcessTree tree(no_target);
    const Running command("sleep 1000 & sleep 1000 & echo up; wait", 1);
    EXPECT_TRUE(eventually([&] { return tree.descendants().size() == 3; }));
    EXPECT_FALSE(tree.kill_and_reap(BootClock::now()));
    EXPECT_TRUE(tree.made_progress()) << "there was no time to find them";
    EXPECT_FALSE(tree.kill_and_reap(Instant::max()) && tree.descendants().size() == 3);
    EXPECT_TRUE(tree.made_progress()) << "they were killed for the first time";
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
    EXPECT_TRUE(tree.kill_and_reap(Instant::max()));
    EXPECT_FALSE(tree.made_progress()) << "nothing was left";
  });
}

TEST(ProcessTree, KillReportsItsProgressAndSparesGuards) {
  in_child([] {
    const Running guard("echo up; exec sleep 1000", 1);
    const Running command("echo up; exec sleep 1000", 1);
    ProcessTree tree(no_target);
    tree.add_guard(guard.pid());
    std::atomic<std::int64_t> progress{0};
    const Instant before = BootClock::now();
    tree.kill(Instant::max(), &progress);
    EXPECT_GE(Instant(Duration(progress)), before);
    EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGKILL);
    EXPECT_EQ(::waitpid(guard.pid(), nullptr, WNOHANG), 0);
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
  });
}

TEST(ProcessTree, KilledProcessesGetAPriorityBelowItsOwn) {
  in_child([] {
    ProcessTree tree(no_target);
    const Running command("echo up; exec sleep 1000", 1);
    proc::claim_cpu_share();
    sched_param own{};
    ASSERT_EQ(::sched_getparam(0, &own), 0);
    if (::sched_getscheduler(0) != SCHED_RR)
      GTEST_SKIP() << "without real-time priorities there is nothing to have";
    tree.kill(Instant::max());
    sched_param killed{};
    EXPECT_EQ(::sched_getparam(command.pid(), &killed), 0) << "not reaped yet";
    EXPECT_EQ(killed.sched_priority, own.sched_priority - 1);
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
  });
}

TEST(ProcessTree, WithARootNothingElseIsTouched) {
  in_child([] {
    const Running other("echo up; exec sleep 1000", 1);
    Pipe up;
    const pid_t root = forked([&] {
      const Running inner("echo up; exec sleep 1000", 1);
      EXPECT_EQ(::write(up.write_end.get(), "x", 1), 1);
      return WTERMSIG(status_of(inner.pid()));
    });
    EXPECT_EQ(up.read(1), "x");
    ProcessTree tree(no_target);
    tree.set_root(root);
    tree.kill(Instant::max());
    EXPECT_EQ(WEXITSTATUS(status_of(root)), SIGKILL) << "it saw its child killed";
    EXPECT_EQ(::waitpid(other.pid(), nullptr, WNOHANG), 0);
    ::kill(other.pid(), SIGKILL);
  });
}

TEST(ProcessTree, AProcessThatMayNotBeSignalledIsSkippedAndNotDead) {
  in_child([] {
    if (::geteuid() != 0)
      GTEST_SKIP() << "needs root to make a process that we then may not signal";
    ProcessTree tree(no_target);
    Pipe hold;
    const pid_t untouchable = forked([&] {
      hold.write_end.reset();
      hold.read(1);
      return 3;
    });
    hold.read_end.reset();
    become_ordinary();
    tree.signal(SIGTERM, Instant::max());
    EXPECT_FALSE(tree.kill_and_reap(Instant::max()));
    EXPECT_EQ(tree.descendants(), std::vector<pid_t>{untouchable});
    hold.write_end.reset();
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
    const auto ended = tree.reap();
    ASSERT_TRUE(ended);
    EXPECT_EQ(WEXITSTATUS(ended->status), 3);
  });
}

TEST(ProcessTree, IsNotDeadBeforeItsCgroupIsEmpty) {
  in_child([] {
    const Directory directory;
    (void)directory.file("cgroup.events", "populated 1\n", 0600);
    const proc::Cgroup cgroup(directory.path());
    ProcessTree tree(no_target);
    tree.confine_to(cgroup);
    EXPECT_FALSE(tree.kill_and_reap(Instant::max()));
    (void)directory.file("cgroup.events", "populated 0\n", 0600);
    EXPECT_TRUE(tree.kill_and_reap(Instant::max()));
  });
}

TEST(ProcessTree, AProcessThatIsHiddenAndMayNotBeSignalledIsLiving) {
  in_child([] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("proc", "/proc", "proc", 0, "hidepid=2") != 0) {
      GTEST_SKIP() << "needs root to hide processes";
    }
    Pipe hold;
    const pid_t hidden = forked([&] {
      hold.write_end.reset();
      hold.read(1);
      return 0;
    });
    ProcessTree tree(no_target);
    become_ordinary();
    EXPECT_EQ(state_of(hidden), '?');
    EXPECT_EQ(tree.descendants(), std::vector<pid_t>{hidden});
    hold.write_end.reset();
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
  });
}

TEST(ProcessTree, WithoutProcItKillsNoProcessAndProvesNothing) {
  in_child([] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/proc", "tmpfs", 0, nullptr) != 0) {
      GTEST_SKIP() << "needs root to hide /proc";
    }
    ProcessTree tree(no_target);
    const Running command("echo up; exec sleep 1000", 1);
    EXPECT_TRUE(tree.descendants().empty());
    EXPECT_FALSE(tree.kill_and_reap(Instant::max()));
    ::kill(command.pid(), SIGKILL);
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
  });
}

TEST(ProcessTree, ProcOfAnOuterNamespaceIsNotTrusted) {
  in_child([] {
    if (::unshare(CLONE_NEWPID) != 0) GTEST_SKIP() << "needs root for a pid namespace";
    EXPECT_EQ(status_of(forked([] {
                ProcessTree tree(no_target);
                const Running command("echo up; exec sleep 1000", 1);
                EXPECT_TRUE(tree.descendants().empty());
                EXPECT_FALSE(tree.kill_and_reap(Instant::max()));
                ::kill(command.pid(), SIGKILL);
                EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
                return ::testing::Test::HasFailure() ? 1 : 0;
              })),
              0);
  });
}

}  // namespace
}  // namespace redlock::guard
