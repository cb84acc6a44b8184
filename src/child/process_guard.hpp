#pragma once

#include <sys/types.h>

#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "child/stop_meter.hpp"
#include "child/stop_plan.hpp"
#include "child/watched_process.hpp"
#include "support/clock.hpp"

namespace redlock::child {

/// Events that the user should learn of while they happen; each is reported once at most.
struct ProcessGuardEvents {
  /// The process is to be stopped. Before any signal, which waits until this returns.
  std::function<void(StopReason)> before_stop;
  /// The stop signal was sent; none is for a lost lease with OnLost::warn.
  std::function<void(StopReason)> stopping;
};

/// What a guard leaves behind.
struct GuardEnd {
  std::set<pid_t> left;  ///< processes that had to be killed and could not be
  Duration late{};       ///< how long after the deadline the last one was seen dead, or was given
                         ///< up; zero: in time, or none had to be killed
};

/// The guard over a process that is not our child, and over all that descends from it: never lets
/// them outlive the lease. It knows the lease by its deadline alone; other code renews the lease
/// and reports that here. Single-threaded.
///
/// The stop signal and CONT are sent at deadline - grace - margin, to processes that are held still
/// for it; KILL follows at deadline - margin, repeated until all of them are seen dead. The margin
/// grows with the measurements (StopMeter). A lease that is lost stops the process at once, with
/// KILL after the grace or at deadline - margin, whichever is sooner. So does the end of max_hold,
/// or a stop request, whatever on_lost says; of those and a loss, the first decides. What the
/// process leaves running when it ends by itself runs on.
class ProcessGuard {
 public:
  /// `clock` and `process` must outlive it.
  ProcessGuard(const Clock& clock, WatchedProcess& process, StopPlan plan,
               ProcessGuardEvents events);

  /// Before guard(). `granted`: max_hold counts from there.
  void arm(Instant deadline, Instant granted);

  /// The lease was extended. Only forward.
  void move_deadline(Instant deadline);

  /// As of a Supervisor.
  void put_off_measuring(Instant until) { meter_.put_off(until); }

  /// The lease has ended: it was lost, or its deadline has passed. Final.
  void lease_is_lost();

  /// Another process has released the lease, so that nothing is left to guard. Final.
  void lease_is_released();

  /// The holder was asked to stop: as at the end of max_hold, now.
  void stop_on_request();

  /// The descriptor of the process is readable: it has ended.
  void process_has_ended();

  /// Until the process has ended, the lease is released, or the plan is carried out. Where that
  /// lets the process run on without the lease, until the lease has ended, too. Call it once.
  asio::awaitable<GuardEnd> guard();

 private:
  enum class LeaseFate { stands, lost, released };

  void end_lease(LeaseFate how);
  [[nodiscard]] Instant terminate_at() const;
  [[nodiscard]] std::optional<StopReason> reason_to_stop(Instant now) const;
  void measure(Instant now);
  asio::awaitable<std::optional<StopReason>> until_stop_is_due();
  asio::awaitable<void> send_stop_signal(Instant kill_at, WatchedProcess::Reach reach);
  asio::awaitable<void> hold_still(Instant until);
  asio::awaitable<void> until_all_ended(Instant kill_at);
  asio::awaitable<std::set<pid_t>> kill_all();

  const Clock& clock_;
  WatchedProcess& process_;
  StopPlan plan_;
  ProcessGuardEvents events_;
  std::unique_ptr<Event> event_;  ///< notified of all that is reported here
  StopMeter meter_;
  Duration margin_;  ///< grows with the measurements
  Instant deadline_;
  Instant hold_until_ = Instant::max();
  StopReason end_of_hold_ = StopReason::max_hold;
  LeaseFate lease_ = LeaseFate::stands;
};

}  // namespace redlock::child
