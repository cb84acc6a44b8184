#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "proc/signal_state.hpp"
#include "support/boot_clock.hpp"

namespace redlock::proc {

/// When each signal was last noted. It has one writer, and is lock-free, so that it can lie in
/// shared memory and be read by another process.
class SignalTimes {
 public:
  void note(int signal, Instant now) noexcept { of(signal) = now.time_since_epoch().count(); }

  void note_all(SignalMask signals, Instant now) noexcept {
    for (int signal = 1; signal <= last_signal; ++signal) {
      if ((signals & mask_of(signal)) != 0) note(signal, now);
    }
  }

  void clear() noexcept {
    for (auto& time : times_) time = never;
  }

  [[nodiscard]] bool noted_since(int signal, Instant when) const noexcept {
    const std::int64_t time = times_[static_cast<std::size_t>(signal - 1)];
    return time != never && time >= when.time_since_epoch().count();
  }

 private:
  static constexpr int last_signal = 64;
  static constexpr std::int64_t never = 0;

  [[nodiscard]] std::atomic<std::int64_t>& of(int signal) noexcept {
    return times_[static_cast<std::size_t>(signal - 1)];
  }

  std::array<std::atomic<std::int64_t>, last_signal> times_{};  ///< nanoseconds of the boot clock
};

}  // namespace redlock::proc
