#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/validity.hpp"
#include "proc/descendants.hpp"
#include "proc/process_stat.hpp"
#include "support/boot_clock.hpp"

namespace redlock::guard {

/// A period in which this process did not run although one of its timers was due.
struct Delay {
  Duration length{};
  bool suspended = false;  ///< the machine was suspended for most of it; else we got no CPU
};

/// The CPU time of the processes of a session between two measurements. The scheduler treats a
/// session as a group with a share of its own (autogroup, sched(7)), so it gets its turns as a
/// group.
struct SessionTime {
  proc::CpuTime longest;     ///< of the process that waited longest for a CPU
  long long timeslices = 0;  ///< of all its processes
};

/// How long a session typically waited until one of its processes got a CPU. Waiting processes of a
/// session take turns, so the longest wait is divided by the number of time slices that the session
/// got on each of `cpus`. The result is at most the average wait per time slice of the process that
/// waited longest.
Duration turn_of(const SessionTime& session, int cpus) noexcept;

/// Measures, while a command runs, what it would cost to stop it: how late our timers fire, how
/// long a walk through its processes takes, how many processes there are, how much memory they
/// have, and how long they wait for a CPU, in total and each time. It works in small steps, so that
/// a tree of thousands of processes delays nothing else, and takes at most 1/50 of the time. It has
/// no timer of its own: the caller waits until next() and then calls step().
class StopMeter {
 public:
  /// The first measurement is due after `interval`; zero: never.
  StopMeter(Duration interval, Instant now);

  /// A timer that was due at `due` fired at `now`.
  void note_timer(Instant due, Instant now);

  /// No measurement is needed before `until`: postpones the next one until then, once. One that
  /// has begun continues.
  void put_off(Instant until);

  /// When to call step(); Instant::max(): never.
  [[nodiscard]] Instant next() const noexcept { return next_; }

  /// Begins or continues a measurement of these processes (except this one) and their descendants.
  /// Returns the result when it is complete; nullopt before.
  std::optional<StopCost> step(const std::vector<pid_t>& roots, Instant now);

  /// The longest delay in the last one or two intervals.
  [[nodiscard]] Delay worst_delay() const noexcept;

 private:
  void note_process(pid_t pid);
  [[nodiscard]] Duration max_turn() const;
  [[nodiscard]] Duration usual_delay() const noexcept;

  Duration interval_;
  Instant next_;
  bool is_put_off_ = false;  ///< next_ is, since the last measurement
  std::optional<proc::DescendantWalk> walk_;
  StopCost cost_;
  proc::CpuTime cpu_;  ///< of all processes together, since the last measurement
  std::unordered_map<pid_t, proc::CpuTime>
      counts_;  ///< of each process since its start, in this measurement
  std::unordered_map<pid_t, proc::CpuTime> last_counts_;
  std::unordered_map<pid_t, SessionTime> sessions_;
  std::array<Duration, 4> latest_{};  ///< a ring buffer of delays
  std::size_t oldest_ = 0;
  Delay current_;
  Delay previous_;
  Duration suspended_;  ///< total suspended time at the last check
};

}  // namespace redlock::guard
