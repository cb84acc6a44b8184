#pragma once

#include <cstddef>
#include <vector>

#include "support/clock.hpp"

namespace redlock {

/// Ends an acquire early: the user gave up. Raised once, from the thread that runs the executor.
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

}  // namespace redlock
