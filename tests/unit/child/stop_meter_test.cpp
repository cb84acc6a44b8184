#include "child/stop_meter.hpp"

#include <sched.h>

#include "in_child.hpp"

namespace redlock::child {
namespace {

using namespace testing;
using namespace std::chrono_literals;

const Instant start{1000s};

/// Steps until it has something to say.
StopCost measure(StopMeter& meter, const std::vector<pid_t>& roots) {
  std::optional<StopCost> cost;
  while (!cost) cost = meter.step(roots, meter.next());
  return *cost;
}

TEST(StopMeter, MeasuresAtItsIntervalOrNever) {
  EXPECT_EQ(StopMeter(5s, start).next(), start + 5s);
  EXPECT_EQ(StopMeter(0s, start).next(), Instant::max());
}

TEST(StopMeter, CountsProcessesAndTheirMemory) {
  in_child([] {
    const Running command("sleep 1000 & sleep 1000 & echo up; wait", 1);
    EXPECT_TRUE(eventually([&] { return living_descendants({command.pid()}).size() == 2; }));
    StopMeter meter(5s, start);
    StopCost cost{};
    EXPECT_TRUE(eventually([&] {
      cost = measure(meter, {::getpid()});
      return cost.private_bytes > 3U << 16;
    })) << "once they have been loaded, not only forked";
    EXPECT_EQ(cost.processes, 3U);
    EXPECT_GT(cost.walk, 0s);
    EXPECT_GE(meter.next(), start + 10s) << "and measures again an interval later";
    for (const pid_t pid : living_descendants({::getpid()})) ::kill(pid, SIGKILL);
  });
}

TEST(StopMeter, SeesProcessesWaitForACpu) {
  in_child([] {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &cpus);
    ASSERT_EQ(::sched_setaffinity(0, sizeof cpus, &cpus), 0);
    const Running command("for i in 1 2 3; do (while :; do :; done) & done; echo up; wait", 1);
    StopMeter meter(1ms, start);
    EXPECT_TRUE(eventually([&] { return measure(meter, {::getpid()}).contention > 1.5; }))
        << "three on one CPU";
    for (const pid_t pid : living_descendants({::getpid()})) ::kill(pid, SIGSTOP);
    EXPECT_TRUE(eventually([&] { return measure(meter, {::getpid()}).contention < 1.1; }))
        << "only what was lately counts";
    for (const pid_t pid : living_descendants({::getpid()})) ::kill(pid, SIGKILL);
  });
}

TEST(StopMeter, OneDelayIsToldButDoesNotCount) {
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

TEST(StopMeter, ForgetsWhatWasLongAgo) {
  StopMeter meter(5s, start);
  for (const auto late : {400ms, 400ms, 1ms, 1ms, 1ms, 1ms}) meter.note_timer(start, start + late);
  EXPECT_EQ(measure(meter, {}).lateness, 1ms);
  EXPECT_EQ(meter.worst_delay().length, 400ms) << "in the interval before this one";
  measure(meter, {});
  EXPECT_EQ(meter.worst_delay().length, 0ms);
}

}  // namespace
}  // namespace redlock::child
