#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "core/vote.hpp"
#include "store/local/lock_directory.hpp"
#include "support/clock.hpp"
#include "support/result.hpp"

namespace redlock::local {

/// What the TIME of a lock file is made of, as stored in the file, and in the clock file of its
/// directory (E1).
struct TimeBase {
  std::chrono::microseconds offset;   ///< TIME minus the kernel's time since boot
  std::chrono::microseconds written;  ///< the kernel's time since boot when this was written
  std::uint64_t time_namespace;       ///< the one of that time since boot; 0 is the host's own

  /// Whether times that are computed from it are in range. Another program may have written it.
  [[nodiscard]] bool is_sane() const {
    constexpr std::chrono::microseconds max = std::chrono::hours(24 * 365 * 200);
    return std::chrono::abs(offset) <= max && std::chrono::abs(written) <= max;
  }
};

/// The kernel's time since boot (CLOCK_BOOTTIME) in the time namespace of this process.
class KernelTime {
 public:
  /// nullopt if /proc does not show the time namespace. `clock` must outlive the object.
  static std::optional<KernelTime> find(const Clock& clock);

  [[nodiscard]] std::chrono::microseconds since_boot() const;
  [[nodiscard]] std::chrono::microseconds wall() const { return clock_->wall(); }

  /// A base that is written now.
  [[nodiscard]] TimeBase base(std::chrono::microseconds offset) const {
    return {offset, since_boot(), time_namespace_};
  }

  /// Whether the host was rebooted after `base` was written: only a reboot sets the time since boot
  /// back. The boot id proves nothing, as containers have boot ids of their own. Read `base` first.
  [[nodiscard]] bool was_rebooted_since(const TimeBase& base) const {
    return is_ours(base) && base.written > since_boot();
  }

  /// Whether `base` is of our time namespace. Another's time since boot may be any other.
  [[nodiscard]] bool is_ours(const TimeBase& base) const {
    return base.time_namespace == time_namespace_;
  }

 private:
  KernelTime(const Clock& clock, std::uint64_t time_namespace)
      : clock_(&clock), time_namespace_(time_namespace) {}

  const Clock* clock_;
  std::uint64_t time_namespace_;
};

/// The fault for a file at this path that was written in another time namespace.
Fault other_time_namespace(const std::string& path);

/// The offset for a lock file that is empty. It is stored in a clock file, which is made if
/// missing: the wall clock when the first lock in the directory was made in this boot. So TIME does
/// not step back for a lock file that is removed and made again, even if the wall clock does.
///
/// `saw_reboot`: a lock file showed that the host was rebooted. If the clock file does not, the
/// offset is raised to that of the wall clock; fences that were forgotten with the former boot are
/// smaller then.
Result<std::chrono::microseconds, Fault> directory_offset(const Directory& directory,
                                                          const KernelTime& time,
                                                          bool saw_reboot = false);

}  // namespace redlock::local
