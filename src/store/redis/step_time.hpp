#pragma once

#include <algorithm>
#include <chrono>

#include "support/clock.hpp"

namespace redlock::redis {

/// The time for a question of several steps, such as to find the master, to ask it, and to teach it
/// the scripts. Each step has as long as the question was given; all together have four times as
/// long.
class StepTime {
 public:
  /// The question begins now. `deadline`: until when its first step must end. The clock must
  /// outlive this.
  StepTime(const Clock& clock, Instant deadline)
      : clock_(clock),
        began_(clock.now()),
        deadline_(deadline),
        end_(later(deadline, 3 * std::max(Duration::zero(), given()))) {}

  /// Until when the first step must end, and with it the round that waits for the answer.
  [[nodiscard]] Instant first_end() const noexcept { return deadline_; }

  /// Until when a step must end that begins now.
  [[nodiscard]] Instant next() const {
    return std::min(end_, later(deadline_, clock_.now() - began_));
  }

 private:
  /// At most a day, as no deadline must overflow.
  [[nodiscard]] Duration given() const {
    return std::min<Duration>(deadline_ - began_, std::chrono::hours(24));
  }

  const Clock& clock_;
  Instant began_;
  Instant deadline_;
  Instant end_;
};

}  // namespace redlock::redis
