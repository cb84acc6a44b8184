#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <memory>
#include <vector>

#include "support/boot_clock.hpp"

namespace redlock {

/// An event that one coroutine at a time may wait for, with a time limit. Not thread-safe: use it
/// only from the thread that runs the executor.
class Event {
 public:
  virtual ~Event() = default;

  /// Wakes the waiting coroutine. If none waits, the next wait_until() returns at once; several
  /// notifications before it count as one.
  virtual void notify() = 0;

  /// Returns true when the event was notified, false when `when` came first. Instant::max() means
  /// no time limit.
  virtual asio::awaitable<bool> wait_until(Instant when) = 0;
};

/// Ends a wait for a lock early, when the user interrupts it. Raised once, from the thread that
/// runs the executor.
class Interrupt {
 public:
  void raise() {
    raised_ = true;
    for (Event* event : listening_) event->notify();
  }
  [[nodiscard]] bool raised() const noexcept { return raised_; }

  /// While this object lives, raise() notifies the event.
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

/// The engine's source of time: the system's clocks, or those of a test.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() const = 0;
  [[nodiscard]] virtual Milliseconds wall() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Event> make_event() const = 0;
};

/// CLOCK_BOOTTIME through timerfd, so that a wait that expires during a suspend ends on resume.
/// (Asio's own timers stop while the machine is suspended.) All events of an executor share one
/// descriptor.
class SystemClock final : public Clock {
 public:
  explicit SystemClock(asio::any_io_executor executor) : executor_(std::move(executor)) {}
  [[nodiscard]] Instant now() const override { return BootClock::now(); }
  [[nodiscard]] Milliseconds wall() const override { return wall_clock_now(); }
  [[nodiscard]] std::unique_ptr<Event> make_event() const override;

 private:
  asio::any_io_executor executor_;
};

/// Waits until `when`.
asio::awaitable<void> sleep_until(const Clock& clock, Instant when);

}  // namespace redlock
