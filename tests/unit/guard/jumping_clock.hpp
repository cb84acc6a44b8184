#pragma once

#include <asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "support/clock.hpp"

namespace redlock::testing {

/// The boot clock, which a test can put forward, as a resume from suspend does: waits whose end has
/// passed return at once.
class JumpingClock final : public Clock {
 public:
  explicit JumpingClock(asio::any_io_executor executor) : real_(std::move(executor)) {}

  [[nodiscard]] Instant now() const override {
    if (const auto when = std::exchange(jumps_when_, nullptr)) {
      if (when()) {
        ahead_ += std::chrono::minutes(1);
      } else {
        jumps_when_ = when;
      }
    }
    return real_.now() + ahead_;
  }
  [[nodiscard]] Milliseconds wall() const override { return real_.wall(); }
  [[nodiscard]] std::unique_ptr<Event> make_event() const override {
    return std::make_unique<JumpingEvent>(*this);
  }

  void jump(Duration span) {
    ahead_ += span;
    for (Event* event : waiting_) event->notify();
  }

  /// Jumps by a minute when it is first read while this is true.
  void jump_when(std::function<bool()> when) { jumps_when_ = std::move(when); }

 private:
  class JumpingEvent final : public Event {
   public:
    explicit JumpingEvent(const JumpingClock& clock)
        : clock_(clock), event_(clock.real_.make_event()) {
      clock_.waiting_.push_back(this);
    }
    ~JumpingEvent() override { std::erase(clock_.waiting_, this); }
    JumpingEvent(const JumpingEvent&) = delete;
    JumpingEvent& operator=(const JumpingEvent&) = delete;
    void notify() override { event_->notify(); }
    asio::awaitable<bool> wait_until(Instant when) override {
      const Instant real = when == Instant::max() ? when : when - clock_.ahead_;
      return event_->wait_until(real);
    }

   private:
    const JumpingClock& clock_;
    std::unique_ptr<Event> event_;
  };

  SystemClock real_;
  mutable Duration ahead_{};
  mutable std::function<bool()> jumps_when_;
  mutable std::vector<Event*> waiting_;
};

}  // namespace redlock::testing
