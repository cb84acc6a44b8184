#include "guard/process_guard.hpp"

#include <signal.h>

#include <asio/io_context.hpp>

#include "../in_child.hpp"
#include "jumping_clock.hpp"
#include "support/readable.hpp"
#include "support/spawn.hpp"

namespace redlock::guard {
namespace {

using namespace testing;
using namespace std::chrono_literals;

constexpr StopPlan guard_plan{
    .grace = 5s, .margin = 250ms, .max_margin = 10s, .stop_signal = SIGTERM};
constexpr std::chrono::minutes lease_span{10};

/// What the guard reported, and its end.
struct GuardOutcome {
  std::vector<StopReason> before_stop;
  std::vector<StopReason> stopping;
  GuardEnd end;
};

using Reasons = std::vector<StopReason>;

/// The objects that a test can change while the process runs under its lease of ten minutes.
struct GuardScene {
  JumpingClock& clock;
  ProcessGuard& guard;
  const GuardOutcome& so_far;
  std::function<void()> settle;  ///< until the guard waits again
  std::function<void()>& when_stopping;
};

/// Guards a running process, and makes the change once the guard waits.
GuardOutcome guarded(pid_t pid, const StopPlan& with,
                     const std::function<void(GuardScene)>& change) {
  auto process = proc::WatchedProcess::open(pid);
  EXPECT_TRUE(process);
  asio::io_context io;
  JumpingClock clock(io.get_executor());
  GuardOutcome outcome;
  std::function<void()> when_stopping;
  ProcessGuard guard(clock, *process, with);
  guard.arm(clock.now() + lease_span, clock.now());
  redlock::spawn(io.get_executor(), [&]() -> asio::awaitable<void> {
    Readable ended(io.get_executor(), process->fd());
    co_await ended.wait();
    guard.process_has_ended();
  });
  redlock::spawn(io.get_executor(), [&]() -> asio::awaitable<void> {
    const auto why = co_await guard.until_stop_is_due();
    if (why) {
      outcome.before_stop.push_back(*why);
      co_await guard.send_stop_signal();
      outcome.stopping.push_back(*why);
      if (when_stopping) when_stopping();
      outcome.end = co_await guard.finish();
    }
    io.stop();
  });
  const auto settle = [&io] { io.poll(); };
  settle();
  change({clock, guard, outcome, settle, when_stopping});
  io.run();
  return outcome;
}

std::string looping(const std::string& trap) {
  return trap + "; echo; while :; do sleep 0.01; done";
}

void expect_stopped(const GuardOutcome& outcome, StopReason why) {
  EXPECT_EQ(outcome.before_stop, Reasons{why});
  EXPECT_EQ(outcome.stopping, Reasons{why});
  EXPECT_TRUE(outcome.end.left.empty());
}

void expect_untouched(const GuardOutcome& outcome) {
  EXPECT_EQ(outcome.before_stop, Reasons());
  EXPECT_EQ(outcome.stopping, Reasons());
  EXPECT_TRUE(outcome.end.left.empty());
  EXPECT_EQ(outcome.end.late, Duration::zero());
}

/// Checks that no signal has ended it: it must die only of this one.
void expect_alive(pid_t pid) {
  ::kill(pid, SIGUSR2);
  EXPECT_EQ(WTERMSIG(status_of(pid)), SIGUSR2);
}

TEST(ProcessGuard, LeavesDescendantsAloneWhenTheProcessEndsByItself) {
  in_child([] {
    const Running command("trap 'exit 3' USR1; sleep 1000 & echo $!; wait", 1);
    const GuardOutcome outcome = guarded(
        command.pid(), guard_plan, [&](const GuardScene&) { ::kill(command.pid(), SIGUSR1); });
    expect_untouched(outcome);
    EXPECT_EQ(WEXITSTATUS(status_of(command.pid())), 3);
    EXPECT_TRUE(eventually([&] { return state_of(command.pid_in_queue(0)) == 'S'; }));
  });
}

TEST(ProcessGuard, ALostLeaseStopsTheProcessAtOnce) {
  in_child([] {
    const Running command(looping("trap 'exit 7' TERM"), 1);
    const GuardOutcome outcome = guarded(
        command.pid(), guard_plan, [](const GuardScene& scene) { scene.guard.lease_is_lost(); });
    expect_stopped(outcome, StopReason::lease);
    EXPECT_EQ(outcome.end.late, Duration::zero());
    EXPECT_EQ(WEXITSTATUS(status_of(command.pid())), 7);
  });
}

TEST(ProcessGuard, ALeaseReleasedByAnotherProcessStopsNothing) {
  in_child([] {
    const Running command(looping(":"), 1);
    expect_untouched(guarded(command.pid(), guard_plan,
                             [](const GuardScene& scene) { scene.guard.lease_is_released(); }));
    expect_alive(command.pid());
  });
}

TEST(ProcessGuard, AnUnrenewedLeaseStopsTheProcessBeforeTheDeadline) {
  in_child([] {
    const Running command(looping("trap 'exit 7' TERM"), 1);
    const GuardOutcome outcome = guarded(command.pid(), guard_plan, [](const GuardScene& scene) {
      scene.clock.jump(lease_span - 1min);
      scene.settle();
      EXPECT_EQ(scene.so_far.before_stop, Reasons());
      scene.clock.jump(1min - guard_plan.grace);
    });
    expect_stopped(outcome, StopReason::lease);
    EXPECT_EQ(outcome.end.late, Duration::zero());
    EXPECT_EQ(WEXITSTATUS(status_of(command.pid())), 7);
  });
}

TEST(ProcessGuard, TheDeadlineOnlyMovesForward) {
  in_child([] {
    const Running command(looping("trap 'exit 3' USR1"), 1);
    const GuardOutcome outcome = guarded(command.pid(), guard_plan, [&](const GuardScene& scene) {
      scene.guard.move_deadline(scene.clock.now() + 2 * lease_span);
      scene.guard.move_deadline(scene.clock.now());
      scene.clock.jump(lease_span);
      scene.settle();
      ::kill(command.pid(), SIGUSR1);
    });
    expect_untouched(outcome);
    EXPECT_EQ(WEXITSTATUS(status_of(command.pid())), 3);
  });
}

TEST(ProcessGuard, KillsAProcessThatIgnoresTheStopSignalAfterTheGrace) {
  in_child([] {
    const Running command(looping("trap '' TERM"), 1);
    const GuardOutcome outcome = guarded(command.pid(), guard_plan, [](const GuardScene& scene) {
      scene.when_stopping = [&clock = scene.clock] { clock.jump(guard_plan.grace); };
      scene.guard.lease_is_lost();
    });
    expect_stopped(outcome, StopReason::lease);
    EXPECT_EQ(outcome.end.late, Duration::zero());
    EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGKILL);
  });
}

TEST(ProcessGuard, KillsDescendantsThatOutliveTheProcessAfterTheGrace) {
  in_child([] {
    Running command("(trap '' TERM; echo; while :; do sleep 1000; done) & wait", 1);
    const GuardOutcome outcome = guarded(command.pid(), guard_plan, [&](const GuardScene& scene) {
      scene.when_stopping = [&, scene] {
        EXPECT_TRUE(eventually([&] { return state_of(command.pid()) == 'Z'; }));
        scene.clock.jump(guard_plan.grace);
      };
      scene.guard.lease_is_lost();
    });
    expect_stopped(outcome, StopReason::lease);
    EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGTERM);
    EXPECT_EQ(command.rest(), "");
  });
}

TEST(ProcessGuard, KillsBeforeTheDeadlineHoweverLongTheGrace) {
  StopPlan patient = guard_plan;
  patient.grace = 5min;
  patient.margin = 30s;
  in_child([&] {
    const Running command(looping("trap '' TERM"), 1);
    const GuardOutcome outcome = guarded(command.pid(), patient, [&](const GuardScene& scene) {
      scene.clock.jump(lease_span - patient.margin - 100ms);
    });
    expect_stopped(outcome, StopReason::lease);
    EXPECT_EQ(outcome.end.late, Duration::zero());
    EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGKILL);
  });
}

TEST(ProcessGuard, ADeathAfterTheDeadlineIsLate) {
  in_child([] {
    const Running command(looping("trap '' TERM"), 1);
    const GuardOutcome outcome = guarded(command.pid(), guard_plan, [](const GuardScene& scene) {
      scene.clock.jump(lease_span + 1min);
    });
    expect_stopped(outcome, StopReason::lease);
    EXPECT_GE(outcome.end.late, 1min);
    EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGKILL);
  });
}

TEST(ProcessGuard, ReportsProcessesThatCannotBeKilled) {
  in_child([] {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to make a process that we may not signal";
    Pipe ready;
    const pid_t parent = forked([&] {
      const pid_t other = ::fork();
      if (other == 0) return ::pause();
      become_ordinary();
      EXPECT_EQ(::write(ready.write_end.get(), &other, sizeof other), sizeof other);
      return ::pause();
    });
    pid_t other = 0;
    EXPECT_EQ(::read(ready.read_end.get(), &other, sizeof other), sizeof other);
    become_ordinary();
    if (state_of(other) == '?') GTEST_SKIP() << "/proc hides processes of other users (hidepid)";
    const GuardOutcome outcome = guarded(
        parent, guard_plan, [](const GuardScene& scene) { scene.clock.jump(lease_span + 1min); });
    EXPECT_EQ(outcome.stopping, Reasons{StopReason::lease});
    EXPECT_EQ(outcome.end.left, std::set<pid_t>{other});
    EXPECT_GE(outcome.end.late, 1min);
    EXPECT_TRUE(WIFSIGNALED(status_of(parent)));
  });
}

StopPlan held_at_most(Duration span, OnLost on_lost = OnLost::kill) {
  StopPlan limited = guard_plan;
  limited.max_hold = span;
  limited.on_lost = on_lost;
  return limited;
}

/// `begin` triggers the stop of a process that ignores the stop signal.
void expect_killed_whatever_on_lost_says(Duration max_hold, StopReason why,
                                         const std::function<void(const GuardScene&)>& begin) {
  for (const OnLost on_lost : {OnLost::kill, OnLost::term, OnLost::warn}) {
    in_child([&] {
      const Running command(looping("trap '' TERM"), 1);
      const GuardOutcome outcome =
          guarded(command.pid(), held_at_most(max_hold, on_lost), [&](const GuardScene& scene) {
            scene.when_stopping = [&clock = scene.clock] { clock.jump(guard_plan.grace); };
            begin(scene);
          });
      expect_stopped(outcome, why);
      EXPECT_EQ(outcome.end.late, Duration::zero());
      EXPECT_EQ(WTERMSIG(status_of(command.pid())), SIGKILL);
    });
  }
}

TEST(ProcessGuard, KillsAtTheEndOfMaxHoldWhateverOnLostIs) {
  expect_killed_whatever_on_lost_says(3min, StopReason::max_hold,
                                      [](const GuardScene& scene) { scene.clock.jump(3min); });
}

TEST(ProcessGuard, KillsOnAStopRequestWhateverOnLostIs) {
  expect_killed_whatever_on_lost_says(10min, StopReason::request, [](const GuardScene& scene) {
    scene.guard.stop_for(StopReason::request);
  });
}

TEST(ProcessGuard, OfMaxHoldAndTheEndOfTheLeaseTheFirstDecides) {
  const auto expect = [](Duration max_hold, StopReason why) {
    in_child([&] {
      const Running command(looping("trap 'exit 7' TERM"), 1);
      const GuardOutcome outcome =
          guarded(command.pid(), held_at_most(max_hold),
                  [](const GuardScene& scene) { scene.clock.jump(lease_span - 3s); });
      expect_stopped(outcome, why);
    });
  };
  // The stop signal is due a grace and a margin before the deadline.
  expect(lease_span - 6s, StopReason::max_hold);
  expect(lease_span - 4s, StopReason::lease);
}

TEST(ProcessGuard, WithTermTheProcessIsSignalledAndMayOutliveTheLease) {
  StopPlan telling = guard_plan;
  telling.on_lost = OnLost::term;
  in_child([&] {
    Running command(looping("trap 'echo told' TERM"), 1);
    const GuardOutcome outcome = guarded(command.pid(), telling, [&](const GuardScene& scene) {
      scene.when_stopping = [&, scene] {
        EXPECT_EQ(command.next_line(), "told");
        scene.guard.lease_is_lost();
      };
      scene.clock.jump(lease_span - guard_plan.grace);
    });
    expect_stopped(outcome, StopReason::lease);
    EXPECT_EQ(outcome.end.late, Duration::zero());
    expect_alive(command.pid());
  });
}

TEST(ProcessGuard, WithWarnALossIsReportedAndNoSignalSent) {
  StopPlan warning = guard_plan;
  warning.on_lost = OnLost::warn;
  in_child([&] {
    const Running command(looping(":"), 1);
    const GuardOutcome outcome = guarded(command.pid(), warning, [](const GuardScene& scene) {
      scene.clock.jump(lease_span);
      scene.settle();
      EXPECT_EQ(scene.so_far.before_stop, Reasons());
      scene.guard.lease_is_lost();
    });
    expect_stopped(outcome, StopReason::lease);
    expect_alive(command.pid());
  });
}

}  // namespace
}  // namespace redlock::guard
