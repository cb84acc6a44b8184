#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <memory>

#include "support/boot_clock.hpp"

namespace redlock {

/// A latch that one coroutine at a time waits on, with a time limit. Single-threaded: ring it from the thread that runs the executor.
class Event {
 public:
  virtual ~Event() = default;

  /// Wakes the waiting coroutine; when none waits, the next wait_until() returns at once. Rings do not add up.
  virtual void notify() = 0;

  /// True when the event rang, false when `when` came first. Instant::max() waits for a ring alone.
  virtual asio::awaitable<bool> wait_until(Instant when) = 0;
};

/// Where the engine gets its time from: the system's clocks, or a test's.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() const = 0;
  [[nodiscard]] virtual Milliseconds wall() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Event> make_event() const = 0;
};

/// CLOCK_BOOTTIME through timerfd, so that a wait that spans a suspend ends right after it (Asio's own timers stop counting then).
class SystemClock final : public Clock {
 public:
  explicit SystemClock(asio::any_io_executor executor) : executor_(std::move(executor)) {}
  [[nodiscard]] Instant now() const override { return BootClock::now(); }
  [[nodiscard]] Milliseconds wall() const override { return wall_clock_now(); }
  [[nodiscard]] std::unique_ptr<Event> make_event() const override;

 private:
  asio::any_io_executor executor_;
};

/// Waits until `when`, whatever rings.
asio::awaitable<void> sleep_until(const Clock& clock, Instant when);

}  // namespace redlock
