#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "guard/signal_record.hpp"
#include "guard/tree.hpp"
#include "support/boot_clock.hpp"

namespace redlock::guard {

/// State that the front process and the holder process share. It lies in shared memory, so that
/// each can read it even while the other hangs. Each value has one writer. It is lock-free, so that
/// a process stopped at any point does not block the other.
struct SharedPage {
  /// The lease's deadline in nanoseconds of the boot clock; 0 while there is no lease, or no
  /// command under it. Written by the holder process.
  std::atomic<std::int64_t> deadline{0};

  /// How long before the deadline KILL is due, in nanoseconds; it grows with the measurements
  /// (StopMeter). Written before the fork, then by the holder process.
  std::atomic<std::int64_t> margin{0};

  /// The command is let go, or was. Before that, nothing can outlive the lease. Written by the
  /// holder process.
  std::atomic<bool> command_starts{false};

  /// The holder process has sent the stop signal, so the front process need not. Written by the
  /// holder process.
  std::atomic<bool> stopping{false};

  /// When the holder process last made progress in killing the command, in nanoseconds of the boot
  /// clock; 0: it has not begun. Written by the holder process.
  std::atomic<std::int64_t> killing_at{0};

  /// How to reach the command in one system call. Written by the holder process.
  CommandTarget target;

  /// The pid of the holder process if it is the child of a Shield and not of the front process;
  /// else 0. Written by the shield.
  std::atomic<pid_t> shielded_holder{0};

  /// The front process has sent the stop signal in the holder process's place; a command that ends
  /// after that does not count as ended by itself. Written by the front process.
  std::atomic<bool> stopped_by_front{false};

  /// The --on-stop command was started. Written by the holder process.
  std::atomic<bool> hook_began{false};

  /// The process group of the command while it is paused (^Z), which lets the front process pause,
  /// too; 0 while it is not paused. Written by the holder process.
  std::atomic<pid_t> paused_group{0};

  /// When the front process received each signal, counted from when a command could exist, whether
  /// or not the signal is passed on. Written by the front process.
  SignalTimes signals_of_front;

  static_assert(std::atomic<std::int64_t>::is_always_lock_free &&
                std::atomic<bool>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free);

  void set_deadline(Instant instant) {
    deadline.store(instant.time_since_epoch().count(), std::memory_order_release);
  }
  void clear_deadline() { deadline.store(0, std::memory_order_release); }
  void set_margin(Duration span) { margin.store(span.count(), std::memory_order_release); }
  [[nodiscard]] Duration get_margin() const {
    return Duration(margin.load(std::memory_order_acquire));
  }

  /// Instant() while the holder process has not begun to kill.
  [[nodiscard]] Instant last_seen_killing() const { return Instant(Duration(killing_at.load())); }

  /// Instant::max() while there is none.
  [[nodiscard]] Instant get_deadline() const {
    const std::int64_t nanoseconds = deadline.load(std::memory_order_acquire);
    return nanoseconds == 0 ? Instant::max() : Instant(Duration(nanoseconds));
  }
};

struct Unmap {
  void operator()(SharedPage* page) const noexcept;
};
using SharedPagePtr = std::unique_ptr<SharedPage, Unmap>;

/// Makes a page that every process forked afterwards shares. Throws std::system_error.
SharedPagePtr make_shared_page();

}  // namespace redlock::guard
