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
    for (Bell* bell : listening_) bell->ring();
  }
  [[nodiscard]] bool raised() const noexcept { return raised_; }

  /// While it lives, raise() rings the bell.
  class Listener {
   public:
    Listener(Interrupt& interrupt, Bell& bell) : interrupt_(interrupt), bell_(&bell) { interrupt_.listening_.push_back(&bell); }
    ~Listener() { std::erase(interrupt_.listening_, bell_); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

   private:
    Interrupt& interrupt_;
    Bell* bell_;
  };

 private:
  bool raised_ = false;
  std::vector<Bell*> listening_;
};

}  // namespace redlock
