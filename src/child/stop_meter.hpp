#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include "child/descendants.hpp"
#include "child/process_stat.hpp"
#include "core/validity.hpp"
#include "support/boot_clock.hpp"

namespace redlock::child {

/// A time in which this process did not run although a timer of its own was due.
struct Delay {
  Duration length{};
  bool suspended = false;  ///< the machine was, for most of the time; else we got no CPU
};

/// What the processes of a session had of the CPU in a time. A session has a share of its own
/// (autogroup, sched(7)), and so a turn of its own.
struct SessionTime {
  CpuTime longest;           ///< of the process that waited longest
  long long timeslices = 0;  ///< of all its processes
};

/// How long the session waited each time before one of its processes got a CPU. Processes that wait
/// side by side get one after the other: the session's turn comes as often as they got one
/// together, on each of `cpus`. But no longer than its longest waiting process waited each time.
Duration turn_of(const SessionTime& session, int cpus) noexcept;

/// Measures, while a command runs, what it would take to stop it: how late our timers fire, how
/// long a walk through its processes takes, how many they are, how much memory they have, how
/// long they wait for a CPU altogether, and how long each time. Works in small steps, so that a
/// tree of thousands delays nothing, and for at most a fiftieth of the time. It only reads and
/// computes: the caller waits until next() and then runs step().
class StopMeter {
 public:
  /// The first measurement is due after `interval`; zero: never.
  StopMeter(Duration interval, Instant now);

  /// A timer that was due at `due` fired at `now`.
  void note_timer(Instant due, Instant now);

  /// No measurement matters before `until`: the next one waits for that. One that has begun goes
  /// on.
  void put_off(Instant until);

  /// When step() is due; Instant::max(): never.
  [[nodiscard]] Instant next() const noexcept { return next_; }

  /// Continues the measurement of these processes, without ourselves, and all below them; returns
  /// the result once it is complete.
  std::optional<StopCost> step(const std::vector<pid_t>& roots, Instant now);

  /// The longest delay in the last one or two intervals.
  [[nodiscard]] Delay worst_delay() const noexcept;

 private:
  void note_process(pid_t pid);
  [[nodiscard]] Duration max_turn() const;
  [[nodiscard]] Duration usual_delay() const noexcept;

  Duration interval_;
  Instant next_;
  std::optional<DescendantWalk> walk_;
  StopCost cost_;
  CpuTime cpu_;                                ///< of all processes since the last measurement
  std::unordered_map<pid_t, CpuTime> counts_;  ///< of each, up to now
  std::unordered_map<pid_t, CpuTime> last_counts_;
  std::unordered_map<pid_t, SessionTime> sessions_;
  std::array<Duration, 4> latest_{};  ///< delays, the oldest overwritten first
  std::size_t oldest_ = 0;
  Delay current_;
  Delay previous_;
  Duration suspended_;  ///< total suspended time at the last check
};

}  // namespace redlock::child
