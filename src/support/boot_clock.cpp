#include "support/boot_clock.hpp"

#include <time.h>

#include <algorithm>
#include <fstream>

#include "support/kernel_calls.hpp"

namespace redlock {
namespace {

Duration read_clock(clockid_t id) noexcept {
  const timespec now = kernel::clock(id);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

BootClock::time_point BootClock::now() noexcept {
  return time_point(read_clock(CLOCK_BOOTTIME));
}

Duration time_suspended() noexcept {
  return read_clock(CLOCK_BOOTTIME) - read_clock(CLOCK_MONOTONIC);
}

Milliseconds wall_clock_now() noexcept {
  return std::chrono::duration_cast<Milliseconds>(read_clock(CLOCK_REALTIME));
}

bool set_boot_timer(int timer, Instant when) noexcept {
  itimerspec at{};
  if (when != Instant::max()) {
    const Duration since_boot = std::max(when.time_since_epoch(), Duration(1));  // 0 disarms it
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    at.it_value.tv_sec = seconds.count();
    at.it_value.tv_nsec = (since_boot - seconds).count();
  }
  return kernel::set_timer(timer, at) == 0;
}

std::optional<std::string> read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (!std::getline(file, id) || id.size() != boot_id_size) return std::nullopt;
  return id;
}

}  // namespace redlock
