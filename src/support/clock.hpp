#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <cstddef>
#include <memory>
#include <vector>

#include "support/boot_clock.hpp"

namespace redlock {

/// An event that one coroutine at a time waits on, with a time limit. Single-threaded: use it from
/// the thread that runs the executor only.
class Event {
 public:
  virtual ~Event() = default;

  /// Wakes the waiting coroutine; when none waits, the next wait_until() returns at once. Several
  /// notifications count as one.
  virtual void notify() = 0;

  /// True when the event was notified, false when `when` came first. Instant::max(): no time limit.
  virtual asio::awaitable<bool> wait_until(Instant when) = 0;
};

/// Ends a wait for a lock early: the user gave up. Raised once, from the thread that runs the
/// executor.
class Interrupt {
 public:
  void raise() {
    raised_ = true;
    for (Event* event : listening_) event->notify();
  }
  [[nodiscard]] bool raised() const noexcept { return raised_; }

  /// While it lives, raise() notifies the event.
  class Listener {
   public:
    Listener(Interrupt& interrupt, Event& event) : interrupt_(interrupt), event_(&event) {
      interrupt_.listening_.push_back(&event);
    }
    ~Listener() { std::erase(interrupt_.listening_, event_); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

   private:
    Interrupt& interrupt_;
    Event* event_;
  };

 private:
  bool raised_ = false;
  std::vector<Event*> listening_;
};

/// Where the engine gets its time from: the system's clocks, or a test's.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() const = 0;
  [[nodiscard]] virtual Milliseconds wall() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Event> make_event() const = 0;
};

/// CLOCK_BOOTTIME through timerfd, so that a wait that spans a suspend ends right after it. (Asio's
/// own timers stop counting during a suspend.) All events of an executor share one descriptor.
class SystemClock final : public Clock {
 public:
  explicit SystemClock(asio::any_io_executor executor) : executor_(std::move(executor)) {}
  [[nodiscard]] Instant now() const override { return BootClock::now(); }
  [[nodiscard]] Milliseconds wall() const override { return wall_clock_now(); }
  [[nodiscard]] std::unique_ptr<Event> make_event() const override;

 private:
  asio::any_io_executor executor_;
};

/// Waits until `when`, whatever events are notified.
asio::awaitable<void> sleep_until(const Clock& clock, Instant when);

}  // namespace redlock
