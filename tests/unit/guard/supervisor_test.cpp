#include "guard/supervisor.hpp"

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <thread>
#include <utility>

#include "../in_child.hpp"
#include "jumping_clock.hpp"
#include "support/readable.hpp"
#include "support/spawn.hpp"

namespace redlock::guard {
namespace {

using namespace testing;
using namespace std::chrono_literals;

constexpr StopPlan plan{.grace = 5s, .margin = 250ms, .max_margin = 10s, .stop_signal = SIGTERM};
constexpr std::chrono::minutes lease_length{10};

/// The objects that a test can change while the command runs under its lease of ten minutes.
struct Scene {
  JumpingClock& clock;
  SharedPage& page;
  Supervisor& supervisor;
  std::function<void()>& after_end;      ///< once finish() has dealt with the command's end
  std::function<void()>& when_awaiting;  ///< what is left of the command's group
};

enum class When { while_it_runs, when_it_has_ended };

/// Runs a command, which writes a line when it is up, in a process of its own; then makes the
/// change. Passes the result to `then`.
void supervise(const StopPlan& with, const std::string& script, When when,
               const std::function<void(Scene)>& change,
               const std::function<void(const CommandEnd&, const SharedPage&)>& then,
               const std::string& hook = {}) {
  in_child([&] {
    const InheritedSignals inherited = InheritedSignals::capture();
    SignalGate gate(inherited);
    asio::io_context io;
    JumpingClock clock(io.get_executor());
    const SharedPagePtr page = make_shared_page();
    const auto isolation = Isolation::make(IsolationMode::none, false);
    std::function<void()> after_end;
    std::function<void()> when_awaiting;
    Supervisor supervisor(clock, with, *page, *isolation, [&](bool) {
      if (after_end) asio::post(io, after_end);
    });
    redlock::spawn(io.get_executor(), [&]() -> asio::awaitable<void> {
      for (;;) {
        const CommandNews news = co_await supervisor.next_news();
        if (when_awaiting && std::holds_alternative<AwaitsGroup>(news)) when_awaiting();
      }
    });
    redlock::spawn(io.get_executor(), [&]() -> asio::awaitable<void> {
      for (Readable readable(io.get_executor(), gate.fd());;) {
        while (gate.read()) supervisor.on_child();
        co_await readable.wait();
      }
    });

    Pipe ready;
    const StdoutTo out(ready);
    const Command command{"/bin/sh", {"sh", "-c", script}};
    std::optional<Command> on_stop;
    if (!hook.empty()) on_stop = {"/bin/sh", {"sh", "-c", hook}};
    ASSERT_TRUE(
        supervisor.prepare(command, {{"PATH=/usr/bin:/bin"}, std::nullopt}, inherited, on_stop));
    supervisor.arm(clock.now() + lease_length, clock.now());
    ASSERT_EQ(*supervisor.start(), true);
    ready.read(1);
    siginfo_t info{};
    if (when == When::when_it_has_ended) {
      ASSERT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    }

    std::optional<CommandEnd> ending;
    redlock::spawn(io.get_executor(), [&]() -> asio::awaitable<void> {
      ending.emplace(co_await supervisor.finish());
      io.stop();
    });
    if (when == When::while_it_runs) io.poll();  // it waits now
    change({clock, *page, supervisor, after_end, when_awaiting});
    io.run();
    then(*ending, *page);
  });
}

void jump(const std::string& script, Duration span,
          const std::function<void(const CommandEnd&)>& then, const StopPlan& with = plan) {
  supervise(
      with, script, When::while_it_runs, [span](Scene scene) { scene.clock.jump(span); },
      [&](const CommandEnd& ending, const SharedPage& page) {
        EXPECT_TRUE(page.stopping);
        then(ending);
      });
}

void signal_command(const SharedPage& page, int signal) {
  ::kill(page.target.command, signal);
}

std::string running(const std::string& trap) {
  return trap + "; echo; while :; do sleep 0.01; done";
}

TEST(Supervisor, KillsAtOnceWhenTheClockHasJumpedPastTheDeadline) {
  jump(running("trap '' TERM"), lease_length + 1min, [](const CommandEnd& ending) {
    EXPECT_EQ(ending.stopped, StopReason::lease);
    EXPECT_TRUE(WIFSIGNALED(*ending.status));
    EXPECT_EQ(WTERMSIG(*ending.status), SIGKILL);
    EXPECT_TRUE(ending.left.empty());
    EXPECT_GE(ending.late, 1min) << "it was dead, but not in time";
  });
}

TEST(Supervisor, SendsTheStopSignalFirstWhenTheClockHasJumpedIntoTheGrace) {
  StopPlan patient = plan;
  patient.grace = 30s;
  jump(
      running("trap 'exit 7' TERM"), lease_length - 20s,
      [](const CommandEnd& ending) {
        EXPECT_EQ(ending.stopped, StopReason::lease);
        EXPECT_TRUE(WIFEXITED(*ending.status));
        EXPECT_EQ(WEXITSTATUS(*ending.status), 7);
        EXPECT_EQ(ending.late, Duration::zero());
      },
      patient);
}

TEST(Supervisor, AnEndSeenAfterTheDeadlineIsLate) {
  supervise(
      plan, "echo", When::when_it_has_ended,
      [](Scene scene) { scene.clock.jump(lease_length + 1min); },
      [](const CommandEnd& ending, const SharedPage&) {
        EXPECT_EQ(ending.stopped, StopReason::lease) << "it may have run on without its lease";
        EXPECT_GT(ending.late, Duration::zero());
      });
}

TEST(Supervisor, AnEndCausedByTheFrontProcessIsNotTheCommandsOwn) {
  supervise(
      plan, "echo", When::when_it_has_ended,
      [](Scene scene) { scene.page.stopped_by_front = true; },
      [](const CommandEnd& ending, const SharedPage&) {
        EXPECT_EQ(ending.stopped, StopReason::lease);
        EXPECT_EQ(ending.late, Duration::zero());
      });
}

TEST(Supervisor, KillsBeforeTheDeadlineHoweverLongTheGrace) {
  StopPlan wide = plan;
  wide.margin = 3s;
  jump(
      running("trap '' TERM"), lease_length - 4s,
      [](const CommandEnd& ending) {
        EXPECT_EQ(WTERMSIG(*ending.status), SIGKILL);
        EXPECT_EQ(ending.late, Duration::zero());
      },
      wide);
}

TEST(Supervisor, IsNotGivenUpWhileItMakesProgressHoweverLate) {
  const std::string many = "for i in $(seq 50); do sleep 1000 & done; ";
  supervise(
      plan, many + running("trap '' TERM"), When::while_it_runs,
      [](Scene scene) {
        // The first walk lasts until a minute after the deadline.
        scene.clock.jump_when([&page = scene.page] { return page.killing_at != 0; });
        scene.clock.jump(lease_length);
      },
      [](const CommandEnd& ending, const SharedPage&) {
        EXPECT_FALSE(ending.unkillable);
        EXPECT_GE(ending.late, 1min);
      });
}

StopPlan at_most(Duration span) {
  StopPlan limited = plan;
  limited.max_hold = span;
  return limited;
}

TEST(Supervisor, AtTheEndOfMaxHoldTheCommandIsSignalledThenKilledUnderTheLease) {
  StopPlan limited = at_most(3min);
  limited.grace = 200ms;
  supervise(
      limited, running("trap '' TERM"), When::while_it_runs,
      [](Scene scene) { scene.clock.jump(3min); },
      [](const CommandEnd& ending, const SharedPage& page) {
        EXPECT_EQ(ending.stopped, StopReason::max_hold);
        EXPECT_NE(ending.stopped, StopReason::lease);
        EXPECT_EQ(WTERMSIG(*ending.status), SIGKILL);
        EXPECT_TRUE(ending.left.empty());
        EXPECT_EQ(ending.late, Duration::zero());
        EXPECT_TRUE(page.stopping) << "the front process need not send its stop signal";
      });
}

TEST(Supervisor, AStopRequestKillsTheCommandUnderTheLeaseWhateverOnLostIs) {
  for (const OnLost on_lost : {OnLost::kill, OnLost::term, OnLost::warn}) {
    StopPlan any = plan;
    any.on_lost = on_lost;
    any.grace = 200ms;
    supervise(
        any, running("trap '' TERM"), When::while_it_runs,
        [](Scene scene) { scene.supervisor.stop_for(StopReason::request); },
        [](const CommandEnd& ending, const SharedPage& page) {
          EXPECT_EQ(ending.stopped, StopReason::request);
          EXPECT_EQ(WTERMSIG(*ending.status), SIGKILL);
          EXPECT_TRUE(ending.left.empty());
          EXPECT_EQ(ending.late, Duration::zero());
          EXPECT_TRUE(page.stopping);
        });
  }
}

TEST(Supervisor, OfMaxHoldAndTheEndOfTheLeaseTheFirstDecides) {
  const std::string ends_well = running("trap 'exit 0' TERM");
  const auto expect = [](StopReason reason) {
    return [reason](const CommandEnd& ending) { EXPECT_EQ(ending.stopped, reason); };
  };
  // The stop signal is due a grace and a margin before the deadline.
  jump(ends_well, lease_length - 3s, expect(StopReason::max_hold), at_most(lease_length - 6s));
  jump(ends_well, lease_length - 3s, expect(StopReason::lease), at_most(lease_length - 4s));
}

TEST(Supervisor, ACommandStoppedAtMaxHoldIsStillDeadBeforeTheDeadline) {
  StopPlan limited = at_most(1min);
  limited.margin = 3s;
  jump(
      running("trap '' TERM"), lease_length - 4s,
      [](const CommandEnd& ending) {
        EXPECT_EQ(ending.stopped, StopReason::max_hold);
        EXPECT_EQ(WTERMSIG(*ending.status), SIGKILL);
        EXPECT_EQ(ending.late, Duration::zero());
      },
      limited);
}

/// A slow hook.
const std::string slow_hook = "sleep 0.3; test $REDLOCK_STOP_REASON = ";

TEST(Supervisor, AStoppedCommandIsSignalledThenKilledUnderTheLease) {
  supervise(
      plan, running("trap 'exit 7' TERM"), When::while_it_runs,
      [](Scene scene) {
        scene.supervisor.stop_for(StopReason::parent_gone);
        scene.after_end = [supervisor = &scene.supervisor] { supervisor->lease_is_lost(); };
      },
      [](const CommandEnd& ending, const SharedPage& page) {
        EXPECT_EQ(ending.stopped, StopReason::parent_gone) << "the first decides";
        EXPECT_EQ(WEXITSTATUS(*ending.status), 7);
        EXPECT_FALSE(page.hook_began);
      });
}

TEST(Supervisor, AHookStartedWithTheStopSignalIsAwaited) {
  supervise(
      plan, running(":"), When::while_it_runs,
      [](Scene scene) { scene.supervisor.stop_for(StopReason::parent_gone); },
      [](const CommandEnd& ending, const SharedPage& page) {
        EXPECT_TRUE(page.hook_began);
        EXPECT_EQ(ending.hook_failure, "");
        EXPECT_TRUE(ending.left.empty());
      },
      slow_hook + "parent_gone");
}

TEST(Supervisor, AHookStartedByASignalIsAwaited) {
  supervise(
      plan, running(":"), When::while_it_runs,
      [](Scene scene) { scene.supervisor.pass_on(SIGTERM, Reached::none); },
      [](const CommandEnd& ending, const SharedPage& page) {
        EXPECT_EQ(ending.stopped, std::nullopt);
        EXPECT_TRUE(page.hook_began);
        EXPECT_EQ(ending.hook_failure, "");
        EXPECT_TRUE(ending.left.empty());
      },
      slow_hook + "signal");
}

TEST(Supervisor, AHookContinuesWhenAnotherGuardIsGone) {
  supervise(
      plan, running(":"), When::while_it_runs,
      [](Scene scene) { scene.supervisor.kill(StopReason::front_killed); },
      [](const CommandEnd& ending, const SharedPage&) {
        EXPECT_EQ(WTERMSIG(*ending.status), SIGKILL);
        EXPECT_EQ(ending.hook_failure, "");
      },
      slow_hook + "front_killed");
}

TEST(Supervisor, AHookThatHangsIsKilledWithTheTree) {
  StopPlan hasty = plan;
  hasty.grace = 200ms;
  supervise(
      hasty, running(":"), When::while_it_runs,
      [](Scene scene) { scene.supervisor.lease_is_lost(); },
      [](const CommandEnd& ending, const SharedPage&) {
        EXPECT_EQ(WTERMSIG(*ending.status), SIGTERM);
        EXPECT_EQ(ending.hook_failure, "--on-stop died of SIGKILL");
        EXPECT_TRUE(ending.left.empty());
      },
      running("trap '' TERM; (setsid sleep 1000 &)"));
}

TEST(Supervisor, AHookThatFailsIsNamed) {
  supervise(
      plan, running(":"), When::while_it_runs,
      [](Scene scene) { scene.supervisor.lease_is_lost(); },
      [](const CommandEnd& ending, const SharedPage&) {
        EXPECT_EQ(ending.hook_failure, "--on-stop failed (exit status 3)");
      },
      "exit 3");
}

TEST(Supervisor, TheDeadlineOnlyMovesForward) {
  supervise(
      plan, running("trap 'exit 3' USR1"), When::while_it_runs,
      [](Scene scene) {
        const Instant before = scene.page.get_deadline();
        scene.supervisor.move_deadline(before - 1min);
        EXPECT_EQ(scene.page.get_deadline(), before);
        scene.supervisor.move_deadline(before + 1min);
        EXPECT_EQ(scene.page.get_deadline(), before + 1min);
        scene.supervisor.pass_on(SIGUSR1, Reached::none);
      },
      [](const CommandEnd& ending, const SharedPage&) {
        EXPECT_EQ(WEXITSTATUS(*ending.status), 3);
      });
}

TEST(Supervisor, TheStopSignalReplacesATermThatIsPassedOn) {
  StopPlan replacing = plan;
  replacing.stop_signal = SIGUSR1;
  supervise(
      replacing, running("trap 'exit 3' USR1; trap 'exit 4' TERM"), When::while_it_runs,
      [](Scene scene) { scene.supervisor.pass_on(SIGTERM, Reached::none); },
      [](const CommandEnd& ending, const SharedPage&) {
        EXPECT_EQ(WEXITSTATUS(*ending.status), 3);
        EXPECT_TRUE(ending.interrupted);
      });
}

TEST(Supervisor, TheStopSignalReplacesNoTermThatHasArrived) {
  StopPlan replacing = plan;
  replacing.stop_signal = SIGUSR1;
  for (const Reached reached : {Reached::job, Reached::everything}) {
    supervise(
        replacing, running("trap 'exit 3' USR1; trap 'exit 4' TERM"), When::while_it_runs,
        [reached](Scene scene) {
          scene.supervisor.pass_on(SIGTERM, reached);
          signal_command(scene.page, SIGTERM);
        },
        [](const CommandEnd& ending, const SharedPage&) {
          EXPECT_EQ(WEXITSTATUS(*ending.status), 4);
        });
  }
}

/// The front process must not send it as well if the lease cannot be renewed during the grace.
TEST(Supervisor, ProcessesLeftRunningGetTheStopSignalOnce) {
  StopPlan killing = plan;
  killing.descendants = Descendants::kill;
  supervise(
      killing, "sleep 1000 & echo", When::when_it_has_ended, [](Scene) {},
      [](const CommandEnd& ending, const SharedPage& page) {
        EXPECT_EQ(*ending.status, 0);
        EXPECT_TRUE(ending.left.empty());
        EXPECT_TRUE(page.stopping);
      });
}

/// A shell that leaves a process in its group. USR1 to the shell alone makes it end by itself.
constexpr const char* leaves_one = "sleep 2 & trap 'exit 3' USR1";

TEST(Supervisor, TheGroupOfACommandEndedByASignalIsAwaited) {
  supervise(
      plan, running(leaves_one), When::while_it_runs,
      [](Scene scene) {
        scene.supervisor.note_signals(proc::mask_of(SIGHUP));
        signal_command(scene.page, SIGUSR1);
      },
      [](const CommandEnd& ending, const SharedPage&) {
        EXPECT_EQ(WEXITSTATUS(*ending.status), 3);
        EXPECT_TRUE(ending.left.empty());
      });
}

TEST(Supervisor, AnOldSignalDoesNotCountAsTheCause) {
  supervise(
      plan, running(leaves_one), When::while_it_runs,
      [](Scene scene) {
        scene.supervisor.note_signals(proc::mask_of(SIGHUP));
        scene.page.signals_of_front.note(SIGHUP, scene.clock.now());
        scene.clock.jump(2min);
        signal_command(scene.page, SIGUSR1);
      },
      [](const CommandEnd& ending, const SharedPage&) {
        EXPECT_EQ(WEXITSTATUS(*ending.status), 3);
        EXPECT_EQ(ending.left.size(), 1U);
        for (const pid_t pid : ending.left) ::kill(pid, SIGKILL);
      });
}

/// The clean-up of a CI agent sends KILL to the command alone, before or after it kills the front
/// process.
TEST(Supervisor, TheSignalThatKillsTheCommandMayComeFromAnyProcess) {
  for (const int signal : {SIGTERM, SIGKILL, SIGUSR2}) {
    supervise(
        plan, running(leaves_one), When::while_it_runs,
        [signal](Scene scene) { ::kill(scene.supervisor.command(), signal); },
        [signal](const CommandEnd& ending, const SharedPage&) {
          EXPECT_EQ(WTERMSIG(*ending.status), signal);
          EXPECT_TRUE(ending.left.empty());
        });
  }
}

/// The only process left is in a session of its own.
TEST(Supervisor, AfterKillItWaitsBecauseTheFrontProcessMayBeKilledNext) {
  supervise(
      plan, "setsid sh -c 'echo; exec sleep 1000' & exec sleep 1000", When::while_it_runs,
      [](Scene scene) {
        scene.after_end = [&supervisor = scene.supervisor] {
          supervisor.kill(StopReason::front_killed);
        };
        ::kill(scene.supervisor.command(), SIGKILL);
      },
      [](const CommandEnd& ending, const SharedPage&) {
        EXPECT_EQ(ending.stopped, StopReason::front_killed);
        EXPECT_TRUE(ending.left.empty());
        for (const pid_t pid : ending.left) ::kill(pid, SIGKILL);
      });
}

/// ^C at a terminal, while the rest of the command is not in the job's group.
TEST(Supervisor, ASignalToTheJobIsPassedOnToTheRestOutsideTheJob) {
  supervise(
      plan, "sleep 1000 & echo; while :; do sleep 0.01; done", When::while_it_runs,
      [](Scene scene) {
        scene.when_awaiting = [&supervisor = scene.supervisor] {
          supervisor.pass_on(SIGINT, Reached::everything);
          supervisor.pass_on(SIGTERM, Reached::job);
        };
        signal_command(scene.page, SIGTERM);
      },
      [](const CommandEnd& ending, const SharedPage&) {
        EXPECT_EQ(WTERMSIG(*ending.status), SIGTERM);
        EXPECT_TRUE(ending.left.empty());
      });
}

/// USR1 makes the command lead a session of its own, and TERM then reaches all of that.
TEST(Supervisor, AnEarlierSignalDoesNotTellWhatHasTheStopSignal) {
  const std::string script = ::testing::TempDir() + "leads." + std::to_string(::getpid());
  const std::string heard = script + ".heard";
  std::ofstream(script) << "if [ \"$1\" = rest ]; then\n"
                           "  trap 'echo TERM >>\"$0.heard\"' TERM; : >\"$0.heard\"; i=0\n"
                           "  while [ $i -lt 100 ]; do sleep 0.01; i=$((i + 1)); done\n"
                           "  exit\n"
                           "fi\n"
                           "sh \"$0\" rest & trap 'sleep 0.3; exit 0' TERM\n"
                           "while :; do sleep 0.01; done\n";
  StopPlan killing = plan;
  killing.descendants = Descendants::kill;
  supervise(
      killing, running("trap 'exec setsid sh " + script + "' USR1"), When::while_it_runs,
      [&](Scene scene) {
        scene.supervisor.pass_on(SIGUSR1, Reached::none);
        ASSERT_TRUE(eventually([&] { return std::filesystem::exists(heard); }));
        ::kill(-scene.supervisor.command(), SIGTERM);
        scene.supervisor.note_signals(proc::mask_of(SIGTERM));
        scene.supervisor.pass_on(SIGTERM, Reached::everything);
      },
      [&](const CommandEnd& ending, const SharedPage&) {
        EXPECT_EQ(*ending.status, 0);
        std::ifstream file(heard);
        EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "TERM\n");
      });
  std::filesystem::remove(script);
  std::filesystem::remove(heard);
}

/// The lease is renewed until it is released, and descendants that the command left may live on.
TEST(Supervisor, TheDeadlineIsNotPublishedAfterTheEnd) {
  Supervisor* supervisor = nullptr;
  supervise(
      plan, "echo", When::when_it_has_ended, [&](Scene scene) { supervisor = &scene.supervisor; },
      [&](const CommandEnd&, const SharedPage& page) {
        EXPECT_EQ(page.get_deadline(), Instant::max());
        supervisor->move_deadline(BootClock::now() + 2 * lease_length);
        EXPECT_EQ(page.get_deadline(), Instant::max());
      });
}

TEST(Supervisor, TheMarginGrowsWithTheMeasurements) {
  StopPlan measuring = plan;
  measuring.measure_interval = 10ms;
  supervise(
      measuring, "(sleep 1000; :) & echo; while :; do sleep 0.01; done", When::while_it_runs,
      [](Scene scene) {
        // It measures in its next loop; after that the command is ended.
        std::thread([&page = scene.page, group = scene.page.target.own_group.load()] {
          eventually([&page] { return page.get_margin() > plan.margin; });
          ::kill(-group, SIGKILL);
        }).detach();
      },
      [](const CommandEnd& ending, const SharedPage& page) {
        EXPECT_EQ(WTERMSIG(*ending.status), SIGKILL);
        EXPECT_GT(page.get_margin(), plan.margin);
        EXPECT_LE(page.get_margin(), plan.max_margin);
      });
}

TEST(Supervisor, StartsNothingWhenTheDeadlineIsTooNear) {
  in_child([] {
    const InheritedSignals inherited = InheritedSignals::capture();
    asio::io_context io;
    const SystemClock clock(io.get_executor());
    const SharedPagePtr page = make_shared_page();
    const auto isolation = Isolation::make(IsolationMode::none, false);
    Supervisor supervisor(clock, plan, *page, *isolation, {});
    ASSERT_TRUE(
        supervisor.prepare({"/bin/sh", {"sh", "-c", "exit 9"}}, {{}, std::nullopt}, inherited));
    supervisor.arm(clock.now() + plan.grace + plan.margin, clock.now());
    EXPECT_EQ(*supervisor.start(), false);
    supervisor.drop();
    EXPECT_EQ(page->get_deadline(), Instant::max());
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  });
}

}  // namespace
}  // namespace redlock::guard
