#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "support/boot_clock.hpp"

namespace redlock::child {

/// What front and holder both must know at every moment, in memory that both see: if one of them hangs, the other still reads it.
/// Each value has one writer. Lock-free, so that a process stopped anywhere holds nothing up.
struct SharedPage {
  /// The lease's deadline in nanoseconds of the boot clock; 0 while there is none, or nothing runs under it.
  std::atomic<std::int64_t> deadline{0};  // the holder's to write

  /// The holder has begun to stop the command: front need not.
  std::atomic<bool> stopping{false};

  /// Front has sent the stop signal in the holder's place: an end of the command is none by itself from then on.
  std::atomic<bool> stopped_by_front{false};

  /// The command is stopped (^Z), so that front may stop, too: its process group; 0 while it is not stopped.
  std::atomic<pid_t> stopped_group{0};  // the holder's to write

  static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
                std::atomic<pid_t>::is_always_lock_free);

  void set_deadline(Instant instant) { deadline.store(instant.time_since_epoch().count(), std::memory_order_release); }
  void clear_deadline() { deadline.store(0, std::memory_order_release); }

  /// Instant::max() while there is none.
  [[nodiscard]] Instant get_deadline() const {
    const std::int64_t nanoseconds = deadline.load(std::memory_order_acquire);
    return nanoseconds == 0 ? Instant::max() : Instant(Duration(nanoseconds));
  }
};

/// A page shared with every process forked afterwards. Throws std::system_error.
struct Unmap {
  void operator()(SharedPage* page) const noexcept;
};
using SharedPagePtr = std::unique_ptr<SharedPage, Unmap>;
SharedPagePtr make_shared_page();

}  // namespace redlock::child
