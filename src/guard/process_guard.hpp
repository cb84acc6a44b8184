#pragma once

#include <sys/types.h>

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <set>

#include "core/stop_plan.hpp"
#include "core/stop_schedule.hpp"
#include "guard/stop_meter.hpp"
#include "proc/watched_process.hpp"
#include "support/clock.hpp"

namespace redlock::guard {

/// What is left when a guard has done its work.
struct GuardEnd {
  std::set<pid_t> left;  ///< processes that should have been killed but could not be
  Duration late{};  ///< how long after the deadline the last one was seen dead, or was given up;
                    ///< zero: in time, or no process had to be killed
};

/// Guards a process that is not our child, and its descendants: they never outlive the lease. It
/// knows only the deadline of the lease; other code renews the lease and calls move_deadline().
/// Single-threaded.
///
/// The StopSchedule decides when the stop signal and CONT are sent, to processes that are held
/// still meanwhile, and when KILL, which is repeated until all of them are seen dead. Its margin
/// grows with the measurements (StopMeter). Descendants that still run when the process ends by
/// itself are left running.
class ProcessGuard {
 public:
  /// `clock` and `process` must outlive it.
  ProcessGuard(const Clock& clock, proc::WatchedProcess& process, StopPlan plan);

  /// Call it before until_stop_is_due(). `granted`: when the lease was granted; max_hold counts
  /// from there.
  void arm(Instant deadline, Instant granted);

  /// The lease was extended. An earlier deadline is ignored.
  void move_deadline(Instant deadline);

  /// See Supervisor::put_off_measuring().
  void put_off_measuring(Instant until) { meter_.put_off(until); }

  /// The lease has ended: it was lost, or its deadline has passed. Final.
  void lease_is_lost();

  /// Another process has released the lease, so there is nothing left to guard. Final.
  void lease_is_released();

  /// Stops the process although the lease is valid.
  void stop_for(StopReason why);

  /// The process has ended: its pidfd is readable.
  void process_has_ended();

  /// The longest recent delay of this process.
  [[nodiscard]] Delay worst_delay() const noexcept { return meter_.worst_delay(); }

  /// Waits until the process must be stopped, and returns why; nullopt: it has ended, or the lease
  /// was released. The process has got no signal yet. Call these three once each, in this order.
  asio::awaitable<std::optional<StopReason>> until_stop_is_due();

  /// Sends the stop signal that is due, unless the lease is lost and OnLost is warn.
  asio::awaitable<void> send_stop_signal();

  /// Carries out the rest of the plan. If the plan lets the process run on without the lease,
  /// returns when the lease or the process has ended.
  asio::awaitable<GuardEnd> finish();

 private:
  void measure(Instant now);
  asio::awaitable<void> hold_still(Instant until);
  asio::awaitable<void> until_all_ended();
  asio::awaitable<std::set<pid_t>> kill_all();

  const Clock& clock_;
  proc::WatchedProcess& process_;
  StopPlan plan_;
  std::unique_ptr<Event> event_;  ///< notified by each function that reports something
  StopSchedule schedule_;
  StopMeter meter_;
  StopStep stop_;          ///< how the stop began
  bool released_ = false;  ///< another process has released the lease
};

}  // namespace redlock::guard
