#include "support/boot_clock.hpp"

#include <time.h>

#include <fstream>

namespace redlock {
namespace {

Duration read_clock(clockid_t id) noexcept {
  timespec now{};
  ::clock_gettime(id, &now);
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

std::optional<std::string> read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (!std::getline(file, id) || id.size() != boot_id_size) return std::nullopt;
  return id;
}

}  // namespace redlock
