#pragma once

#include <functional>
#include <memory>

#include "support/clock.hpp"

namespace redlock::testing {

/// The system's clocks, set to other times.
class ShiftedClock final : public Clock {
 public:
  explicit ShiftedClock(const Clock& clock) : clock_(clock) {}
  [[nodiscard]] Instant now() const override {
    if (when_read) when_read();
    return clock_.now() + boot_shift;
  }
  [[nodiscard]] Milliseconds wall() const override { return clock_.wall() + wall_shift; }
  [[nodiscard]] std::unique_ptr<Event> make_event() const override { return clock_.make_event(); }

  Duration boot_shift{};
  Milliseconds wall_shift{};
  std::function<void()> when_read;

 private:
  const Clock& clock_;
};

}  // namespace redlock::testing
