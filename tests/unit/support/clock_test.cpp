#include "support/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/spawn.hpp"

namespace redlock {
namespace {

using namespace std::chrono_literals;

std::ptrdiff_t open_timers() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return std::count_if(begin(descriptors), end(descriptors), [](const auto& entry) {
    std::error_code error;
    return std::filesystem::read_symlink(entry, error) == "anon_inode:[timerfd]";
  });
}

/// The time until the last of this process's armed timers expires.
std::chrono::seconds longest_timer() {
  std::chrono::seconds longest{0};
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(entry.path());
    for (std::string line; std::getline(info, line);) {
      long left = 0;
      if (std::sscanf(line.c_str(), "it_value: (%ld,", &left) == 1)
        longest = std::max(longest, std::chrono::seconds(left));
    }
  }
  return longest;
}

class SystemClockTest : public testing::Test {
 protected:
  /// Records the end of the wait: `NAME` if it was notified, else `NAME late`.
  void wait(Event& event, Instant until, const std::string& name) {
    spawn(io_.get_executor(), [this, &event, until, name]() -> asio::awaitable<void> {
      const bool notified = co_await event.wait_until(until);
      course_.push_back(notified ? name : name + " late");
    });
  }

  asio::io_context io_{1};
  SystemClock clock_{io_.get_executor()};
  std::vector<std::string> course_;
};

using Course = std::vector<std::string>;

TEST_F(SystemClockTest, WaitsEndInTheOrderOfTheirTimesOnOneTimer) {
  const auto first = clock_.make_event();
  const auto second = clock_.make_event();
  const auto third = clock_.make_event();
  // On a busy machine the first deadline may pass before all three wait: retry with longer delays.
  Instant soonest;
  Duration step = 10ms;
  do {
    step *= 2;
    io_.restart();
    io_.run();  // what is left of an attempt that took too long
    io_.restart();
    course_.clear();
    const Instant now = clock_.now();
    soonest = now + step;
    wait(*third, now + 3 * step, "third");
    io_.poll();
    const auto timers = open_timers();
    wait(*first, soonest, "first");
    wait(*second, now + 2 * step, "second");
    io_.poll();
    EXPECT_EQ(open_timers(), timers);
  } while (clock_.now() >= soonest);
  EXPECT_LT(io_.run(), 30U) << "it does not ask again and again";
  EXPECT_EQ(course_, (Course{"first late", "second late", "third late"}));
  EXPECT_GE(clock_.now(), soonest + 2 * step);
}

TEST_F(SystemClockTest, AnEventEndsOnlyItsOwnWait) {
  const auto called = clock_.make_event();
  const auto other = clock_.make_event();
  wait(*called, Instant::max(), "called");
  wait(*other, clock_.now() + 1h, "other");
  io_.poll();
  called->notify();
  io_.poll();
  EXPECT_EQ(course_, (Course{"called"}));
  other->notify();
  io_.run();
  EXPECT_EQ(course_, (Course{"called", "other"}));
}

TEST_F(SystemClockTest, AnEarlierNotificationCountsOnce) {
  const auto event = clock_.make_event();
  event->notify();
  event->notify();
  wait(*event, Instant::max(), "first");
  io_.run();
  wait(*event, clock_.now() + 1ms, "second");
  io_.restart();
  io_.run();
  EXPECT_EQ(course_, (Course{"first", "second late"}));
}

TEST_F(SystemClockTest, AWaitThatEndedEarlyDelaysNoOther) {
  const auto left = clock_.make_event();
  const auto near = clock_.make_event();
  const Instant began = clock_.now();
  // The timer stays armed, first for a distant time, then for one that has passed.
  for (const Duration span : {Duration(1h), Duration(1ms)}) {
    const Instant until = clock_.now() + span;
    wait(*left, until, "left");
    io_.restart();
    io_.poll();
    left->notify();
    io_.run();  // it ends although the timer is set
    EXPECT_LT(clock_.now(), began + 1h);
    while (span < 1s && clock_.now() <= until) {
    }
    wait(*near, clock_.now() + 2ms, "near");
    io_.restart();
    io_.run();
    EXPECT_EQ(course_.back(), "near late");
    EXPECT_LT(clock_.now(), began + 1h);
  }
}

TEST_F(SystemClockTest, AWaitThatEndedEarlyDoesNotWakeADistantOne) {
  const auto left = clock_.make_event();
  const auto far = clock_.make_event();
  wait(*left, clock_.now() + 1min, "left");
  io_.poll();
  left->notify();
  io_.run();
  wait(*far, clock_.now() + 1h, "far");
  io_.restart();
  io_.poll();
  EXPECT_GT(longest_timer(), 1min);
  far->notify();
  io_.run();
}

TEST_F(SystemClockTest, AWaitMayBeginWhenAnotherEnds) {
  const auto event = clock_.make_event();
  int ends = 0;
  spawn(io_.get_executor(), [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 5; ++i) {
      co_await event->wait_until(clock_.now() + 1ms);
      ++ends;
    }
  });
  io_.run();
  EXPECT_EQ(ends, 5);
}

TEST_F(SystemClockTest, WaitingCoroutinesAreDestroyedWithTheirExecutor) {
  const auto witness = std::make_shared<int>();
  {
    asio::io_context io(1);
    const SystemClock clock(io.get_executor());
    for (const Instant until : {Instant::max(), clock.now() + 1h}) {
      spawn(io.get_executor(), [&clock, until, witness]() -> asio::awaitable<void> {
        const auto kept = witness;
        co_await sleep_until(clock, until);  // it owns the event that it waits on
      });
    }
    io.poll();
    EXPECT_GT(witness.use_count(), 1);
  }
  EXPECT_EQ(witness.use_count(), 1);
}

}  // namespace
}  // namespace redlock
