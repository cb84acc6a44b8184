#include "guard/stop_meter.hpp"

#include <sched.h>

#include <thread>

#include "../in_child.hpp"

namespace redlock::guard {
namespace {

using namespace testing;
using namespace std::chrono_literals;

const Instant start{1000s};

/// Calls step() until it returns a result.
StopCost measure(StopMeter& meter, const std::vector<pid_t>& roots) {
  std::optional<StopCost> cost;
  while (!cost) cost = meter.step(roots, meter.next());
  return *cost;
}

void stay_on_one_cpu() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &cpus);
  ASSERT_EQ(::sched_setaffinity(0, sizeof cpus, &cpus), 0);
}

constexpr std::uint64_t busy_processes = 20;
constexpr const char* busy_in_one_session =
    "for i in $(seq 20); do (while :; do :; done) & done; echo up; wait";
constexpr const char* busy_in_sessions_of_their_own =
    "for i in $(seq 20); do setsid sh -c 'while :; do :; done' & done; echo up; wait";

/// The cost of stopping such a command, measured while all its processes compete for a CPU.
StopCost cost_of(const char* script) {
  const Running command(script, 1);
  StopMeter meter(1ms, start);
  StopCost cost{};
  EXPECT_TRUE(eventually([&] {
    std::this_thread::sleep_for(400ms);  // the measurement covers what they do meanwhile
    cost = measure(meter, {::getpid()});
    return cost.processes > busy_processes && cost.contention > 3;
  }));
  for (const pid_t pid : proc::living_descendants({::getpid()})) ::kill(pid, SIGKILL);
  return cost;
}

TEST(StopMeter, MeasuresAtItsIntervalOrNever) {
  EXPECT_EQ(StopMeter(5s, start).next(), start + 5s);
  EXPECT_EQ(StopMeter(0s, start).next(), Instant::max());
}

TEST(StopMeter, MayBePutOffOnceForEachMeasurement) {
  StopMeter meter(5s, start);
  meter.put_off(start + 9s);
  EXPECT_EQ(meter.next(), start + 9s);
  // Servers that close idle connections cause early renewals, which must not put it off for ever.
  meter.put_off(start + 12s);
  EXPECT_EQ(meter.next(), start + 9s);
  StopMeter early(5s, start);
  early.put_off(start + 3s);
  EXPECT_EQ(early.next(), start + 5s) << "not brought forward";
  StopMeter never(0s, start);
  never.put_off(start + 9s);
  EXPECT_EQ(never.next(), Instant::max());
}

TEST(StopMeter, CountsProcessesAndTheirMemory) {
  in_child([] {
    const Running command("sleep 1000 & sleep 1000 & echo up; wait", 1);
    EXPECT_TRUE(eventually([&] { return proc::living_descendants({command.pid()}).size() == 2; }));
    StopMeter meter(5s, start);
    StopCost cost{};
    EXPECT_TRUE(eventually([&] {
      cost = measure(meter, {::getpid()});
      return cost.private_bytes > 3U << 16;
    })) << "once they have been loaded, not only forked";
    EXPECT_EQ(cost.processes, 3U);
    EXPECT_GT(cost.walk, 0s);
    EXPECT_EQ(measure(meter, {command.pid()}).processes, 3U) << "a root that is not we counts, too";
    EXPECT_GE(meter.next(), start + 10s) << "and measures again an interval later";
    for (const pid_t pid : proc::living_descendants({::getpid()})) ::kill(pid, SIGKILL);
  });
}

TEST(StopMeter, SeesProcessesWaitForACpu) {
  in_child([] {
    stay_on_one_cpu();
    const Running command("for i in 1 2 3; do (while :; do :; done) & done; echo up; wait", 1);
    StopMeter meter(1ms, start);
    EXPECT_TRUE(eventually([&] { return measure(meter, {::getpid()}).contention > 1.5; }))
        << "three on one CPU";
    for (const pid_t pid : proc::living_descendants({::getpid()})) ::kill(pid, SIGSTOP);
    EXPECT_TRUE(eventually([&] { return measure(meter, {::getpid()}).contention < 1.1; }))
        << "only what was lately counts";
    for (const pid_t pid : proc::living_descendants({::getpid()})) ::kill(pid, SIGKILL);
  });
}

TEST(TurnOf, IsTheWaitOfASessionForEachTurn) {
  // In one second, with a turn every 50 ms on each CPU.
  EXPECT_EQ(turn_of({{.waited = 1s, .timeslices = 20}, 20}, 2), 50ms) << "one process, on any CPU";
  EXPECT_EQ(turn_of({{.waited = 1s, .timeslices = 20}, 40}, 2), 50ms) << "one on each of two";
  EXPECT_EQ(turn_of({{.waited = 1s, .timeslices = 4}, 40}, 2), 50ms) << "ten on two";
  EXPECT_EQ(turn_of({{.waited = 1s, .timeslices = 2}, 20}, 1), 50ms) << "ten on one";
  EXPECT_EQ(turn_of({}, 2), 0s);
}

TEST(StopMeter, SeesSessionsWaitForTheirTurn) {
  in_child([] {
    stay_on_one_cpu();
    // Either one of twenty processes gets the CPU at each turn of their session, or twenty sessions
    // take turns. Other work on this CPU makes both wait longer, which brings the results closer
    // together.
    const Duration together = cost_of(busy_in_one_session).turn;
    const Duration apart = cost_of(busy_in_sessions_of_their_own).turn;
    EXPECT_GT(apart, 2 * together);
  });
}

TEST(StopMeter, CountsNoTurnIfKilledProcessesGetARealTimePriority) {
  in_child([] {
    stay_on_one_cpu();
    sched_param priority{};
    priority.sched_priority = 1;
    if (::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &priority) != 0)
      GTEST_SKIP() << "no real-time priority for this user";
    EXPECT_EQ(cost_of(busy_in_sessions_of_their_own).turn, 0s);
  });
}

TEST(StopMeter, ASingleDelayIsReportedButDoesNotCount) {
  StopMeter meter(5s, start);
  meter.note_timer(start, start + 3s);
  EXPECT_EQ(meter.worst_delay().length, 3s);
  EXPECT_FALSE(meter.worst_delay().suspended);
  EXPECT_EQ(measure(meter, {}).lateness, 0s);
}

TEST(StopMeter, DelaysOfEveryTimerCount) {
  StopMeter meter(5s, start);
  for (const auto late : {400ms, 300ms, 500ms}) meter.note_timer(start, start + late);
  EXPECT_EQ(measure(meter, {}).lateness, 400ms);
}

TEST(StopMeter, ForgetsOldDelays) {
  StopMeter meter(5s, start);
  for (const auto late : {400ms, 400ms, 1ms, 1ms, 1ms, 1ms}) meter.note_timer(start, start + late);
  EXPECT_EQ(measure(meter, {}).lateness, 1ms);
  EXPECT_EQ(meter.worst_delay().length, 400ms) << "in the interval before this one";
  measure(meter, {});
  EXPECT_EQ(meter.worst_delay().length, 0ms);
}

}  // namespace
}  // namespace redlock::guard
