#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace redlock {

/// CLOCK_BOOTTIME as a chrono clock. It never steps, and it keeps counting while the machine is
/// suspended, as a lease on a server keeps expiring. CLOCK_MONOTONIC would stop. All clocks here
/// are the kernel's, as the timers are: a library that fakes the time (faketime) cannot part them.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
};

/// A point on the boot clock. Deadlines are Instants; they are meaningless on another host and
/// after a reboot.
using Instant = BootClock::time_point;

/// A span of time. Milliseconds appear only where a server reads or writes them.
using Duration = std::chrono::nanoseconds;

using Milliseconds = std::chrono::milliseconds;

/// The instant `span` after `from`, or Instant::max() if that would overflow, because a wait may
/// have any length.
constexpr Instant later(Instant from, Duration span) noexcept {
  return span < Instant::max() - from ? from + span : Instant::max();
}

/// Sets a timer of timerfd_create(CLOCK_BOOTTIME) to expire at `when`, or never: Instant::max().
/// Returns false and sets errno on failure.
bool set_boot_timer(int timer, Instant when) noexcept;

/// How long the machine has been suspended since boot (CLOCK_BOOTTIME minus CLOCK_MONOTONIC).
Duration time_suspended() noexcept;

/// The wall clock (CLOCK_REALTIME) since the epoch: for fences, tickets and display, never for a
/// deadline.
Milliseconds wall_clock_now() noexcept;

inline constexpr std::size_t boot_id_size = 36;

/// The kernel's identifier of this boot, boot_id_size characters; nullopt without /proc.
std::optional<std::string> read_boot_id();

}  // namespace redlock
