#include "guard/front.hpp"

#include <poll.h>

#include <map>

#include "../in_child.hpp"
#include "proc/descendants.hpp"

namespace redlock::guard {
namespace {

using namespace testing;

/// Runs Front in a process of its own, with a holder process that reports a running command with
/// `deadline`, and then runs `holder`.
void guard_holder(const StopPlan& plan,
                  const std::function<void(SharedPage&, const Channel&, Instant deadline)>& holder,
                  const std::function<void(const HolderExit&, Instant deadline)>& then) {
  in_child([&] {
    const InheritedSignals inherited = InheritedSignals::capture();
    SignalGate gate(inherited);
    Front front(gate, plan, /*shares_group=*/false, std::nullopt, nullptr);
    if (front.fork_holder(0, nullptr)) {
      const Channel channel = front.take_channel();
      const Instant deadline = BootClock::now() + 2 * plan.margin;
      front.page().set_deadline(deadline);
      channel.send({Message::Kind::started, 0, {}});
      ::alarm(kHangSeconds);
      holder(front.page(), channel, deadline);
      ::_exit(0);
    }
    const HolderExit holder_exit = front.guard();
    front.wait_for_holder();
    then(holder_exit, front.page().get_deadline());
  });
}

[[noreturn]] void hang() {
  for (;;) ::pause();
}

StopPlan with_margin(Milliseconds margin, OnLost on_lost = OnLost::kill) {
  StopPlan plan{};
  plan.margin = margin;
  plan.stop_signal = SIGTERM;
  plan.on_lost = on_lost;
  return plan;
}

TEST(Front, KillsBeforeTheDeadlineIfTheHolderHangs) {
  guard_holder(
      with_margin(Milliseconds(1500)), [](SharedPage&, const Channel&, Instant) { hang(); },
      [](const HolderExit& holder_exit, Instant deadline) {
        EXPECT_LT(BootClock::now(), deadline);
        EXPECT_EQ(holder_exit.source, HolderExit::Source::holder_hung);
        EXPECT_EQ(holder_exit.late, Duration::zero());
      });
}

TEST(Front, GivesTheHolderTimeToActFirst) {
  const StopPlan plan = with_margin(Milliseconds(400));
  guard_holder(
      plan, [](SharedPage&, const Channel&, Instant) { hang(); },
      [&](const HolderExit&, Instant deadline) {
        EXPECT_GT(BootClock::now(), deadline - plan.margin);
      });
}

TEST(Front, TellsAStoppedHolderFromOneThatHangs) {
  guard_holder(
      with_margin(Milliseconds(1000)),
      [](SharedPage&, const Channel&, Instant) { ::raise(SIGSTOP); },
      [](const HolderExit& holder_exit, Instant) {
        EXPECT_EQ(holder_exit.source, HolderExit::Source::holder_stopped);
      });
}

TEST(Front, HelpsAKillingHolderAndLeavesTheReportToIt) {
  // The holder may take a quarter of the margin to begin killing, and it has no CPU priority here.
  guard_holder(
      with_margin(Milliseconds(3000)),
      [](SharedPage& page, const Channel& channel, Instant deadline) {
        // It makes slow progress, for longer than a hung holder would be given, and past the
        // deadline.
        const pid_t child = forked([] { return ::pause(); });
        while (BootClock::now() < deadline + Milliseconds(100)) {
          page.killing_at = BootClock::now().time_since_epoch().count();
          ::usleep(100'000);
        }
        const bool killed = WTERMSIG(status_of(child)) == SIGKILL;
        channel.send({Message::Kind::exited, killed ? 80 : 1, "{}"});
      },
      [](const HolderExit& holder_exit, Instant) {
        EXPECT_EQ(holder_exit.source, HolderExit::Source::report);
        EXPECT_EQ(holder_exit.exit_code, 80);
      });
}

TEST(Front, ReportsHowLateItWas) {
  guard_holder(
      with_margin(Milliseconds(1000)),
      [](SharedPage& page, const Channel&, Instant) {
        page.command_starts = true;
        page.set_deadline(BootClock::now() - Milliseconds(700));
        hang();
      },
      [](const HolderExit& holder_exit, Instant) {
        EXPECT_GE(holder_exit.late, Milliseconds(700));
        EXPECT_FALSE(holder_exit.unkillable);
      });
}

TEST(Front, WhatNeverStartedIsNotLate) {
  guard_holder(
      with_margin(Milliseconds(1000)),
      [](SharedPage& page, const Channel&, Instant) {
        page.set_deadline(BootClock::now() - Milliseconds(700));
        hang();
      },
      [](const HolderExit& holder_exit, Instant) {
        EXPECT_EQ(holder_exit.late, Duration::zero());
        EXPECT_FALSE(holder_exit.command_began);
      });
}

/// The next message; nullopt when none comes.
std::optional<Message> next_message(const Channel& channel) {
  pollfd readable{channel.fd(), POLLIN, 0};
  if (::poll(&readable, 1, static_cast<int>(kHangSeconds) * 500) != 1) return std::nullopt;
  return channel.receive().first;
}

/// The signals that the front process passes on, up to this one, each with whether it reports that
/// the command has received it.
std::map<int, bool> signals_until(const Channel& channel, int last) {
  std::map<int, bool> signals;
  for (auto next = next_message(channel); next && next->number != last;
       next = next_message(channel)) {
    if (next->kind == Message::Kind::signal) signals[next->number] = next->reached_job;
  }
  return signals;
}

/// The answer to `may_start` came too late, so the command was dropped. Signals to its group must
/// be passed on all the same.
TEST(Front, PassesOnSignalsToTheGroupBeforeItWaitsAgain) {
  in_child([] {
    ::setpgid(0, 0);
    const pid_t group = ::getpid();
    const InheritedSignals inherited = InheritedSignals::capture();
    SignalGate gate(inherited);
    Front front(gate, with_margin(Milliseconds(1000)), /*shares_group=*/true, std::nullopt,
                nullptr);
    if (front.fork_holder(0, nullptr)) {
      ::setpgid(0, 0);
      // It has the highest number, so it is passed on after the others.
      const int last = SIGRTMIN;
      const Channel channel = front.take_channel();
      channel.send({Message::Kind::may_start, 1, {}});
      const auto go = next_message(channel);
      const bool started = go && go->kind == Message::Kind::go;

      ::kill(-group, SIGTERM);
      ::kill(group, last);
      const auto to_group = signals_until(channel, last);
      ::kill(-group, SIGHUP);
      channel.send({Message::Kind::waiting, 0, {}});
      ::kill(group, last);
      const auto undecided = signals_until(channel, last);
      const bool passed_on = to_group == std::map<int, bool>{{SIGTERM, true}} &&
                             undecided == std::map<int, bool>{{SIGHUP, false}};
      channel.send({Message::Kind::exited, started && passed_on ? 0 : 1, {}});
      ::_exit(0);
    }
    EXPECT_EQ(front.guard().exit_code, 0);
    front.wait_for_holder();
  });
}

/// A foreign child, as in `helper & exec redlock-cli run …`. The helper ends, and its child becomes
/// an orphan that is reparented to the front process.
TEST(Front, KillsTheTreeOfADeadHolderButNoForeignProcesses) {
  in_child([] {
    const InheritedSignals inherited = InheritedSignals::capture();
    SignalGate gate(inherited);
    const Running helper("sleep 1000 & echo up; wait", 1);
    Pipe pids;
    Front front(gate, with_margin(Milliseconds(1000)), /*shares_group=*/false, std::nullopt,
                nullptr);
    if (front.fork_holder(0, nullptr)) {
      const Running command("setsid sh -c 'echo $$; exec sleep 1000' & exec sleep 1000", 1);
      const std::string line = command.line(0) + "\n";
      EXPECT_EQ(::write(pids.write_end.get(), line.data(), line.size()),
                static_cast<ssize_t>(line.size()));
      ::raise(SIGKILL);
    }
    const pid_t daemon = std::stoi(pids.read_line());
    ::kill(helper.pid(), SIGKILL);
    EXPECT_TRUE(eventually([&] { return state_of(helper.pid()) == 'Z'; }));
    const std::vector<pid_t> bystanders = proc::living_descendants({::getpid()});

    EXPECT_EQ(front.guard().source, HolderExit::Source::holder_died);
    EXPECT_EQ(state_of(daemon), '?') << "it came out of the holder";
    std::size_t living = 0;
    for (const pid_t pid : bystanders) {
      const char state = state_of(pid);
      living += state != 'Z' && state != '?' ? 1U : 0U;
    }
    EXPECT_GE(living, 1U) << "it did not";
    for (const pid_t pid : proc::living_descendants({::getpid()})) ::kill(pid, SIGKILL);
  });
}

}  // namespace
}  // namespace redlock::guard
