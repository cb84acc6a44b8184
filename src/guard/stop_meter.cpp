#include "guard/stop_meter.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "proc/cpu_share.hpp"
#include "proc/process_stat.hpp"

namespace redlock::guard {
namespace {

/// How long a step may delay other work. On a loaded machine this is about one turn on the CPU.
constexpr Milliseconds step_length{10};

/// The pause between two steps, in which other coroutines run.
constexpr Milliseconds step_pause{1};

/// After a walk, measuring pauses for this many times its duration, so it takes at most 1/50 of the
/// time.
constexpr int pause_per_walk = 50;

/// Added to the time that the processes ran, because the ratio means little for processes that
/// hardly run.
constexpr Milliseconds assumed_run{20};

/// How many CPUs this process and the command may use. The first call fails with more CPUs than a
/// cpu_set_t holds.
int permitted_cpus() noexcept {
  cpu_set_t cpus;
  return ::sched_getaffinity(0, sizeof cpus, &cpus) == 0
             ? CPU_COUNT(&cpus)
             : static_cast<int>(std::thread::hardware_concurrency());
}

double contention(const proc::CpuTime& cpu) noexcept {
  const Duration ran = cpu.ran + assumed_run;
  return static_cast<double>((ran + cpu.waited).count()) / static_cast<double>(ran.count());
}

}  // namespace

Duration turn_of(const SessionTime& session, int cpus) noexcept {
  if (session.longest.timeslices == 0) return {};
  return std::min(session.longest.waited * cpus / session.timeslices,
                  session.longest.waited / session.longest.timeslices);
}

StopMeter::StopMeter(Duration interval, Instant now)
    : interval_(interval),
      next_(interval > Duration::zero() ? now + interval : Instant::max()),
      suspended_(time_suspended()) {}

void StopMeter::note_timer(Instant due, Instant now) {
  const Duration suspended = time_suspended();
  const Duration late = now - due;
  const bool was_suspended = suspended - suspended_ > late / 2;
  suspended_ = suspended;
  if (late > current_.length) current_ = {late, was_suspended};
  if (was_suspended) return;
  latest_.at(oldest_) = late;
  oldest_ = (oldest_ + 1) % latest_.size();
}

void StopMeter::put_off(Instant until) {
  if (walk_ || std::exchange(is_put_off_, true)) return;
  next_ = std::max(next_, until);
}

std::optional<StopCost> StopMeter::step(const std::vector<pid_t>& roots, Instant now) {
  const Instant began = BootClock::now();
  if (!walk_) {
    walk_.emplace(roots);
    is_put_off_ = false;
    cost_ = {};
    cpu_ = {};
    sessions_.clear();
    for (const pid_t root : roots) {
      if (root != ::getpid()) note_process(root);
    }
  }

  Instant reached = began;
  while (reached - began < step_length) {
    const auto pid = walk_->next();
    reached = BootClock::now();
    if (!pid) {
      cost_.walk += reached - began;
      cost_.lateness = usual_delay();
      cost_.contention = contention(cpu_);
      if (!proc::lends_real_time()) cost_.turn = max_turn();
      last_counts_ = std::exchange(counts_, {});
      previous_ = std::exchange(current_, {});
      next_ = now + (reached - began) + std::max(interval_, pause_per_walk * cost_.walk);
      walk_.reset();
      return cost_;
    }
    note_process(*pid);
  }
  cost_.walk += reached - began;
  next_ = now + (reached - began) + step_pause;
  return std::nullopt;
}

void StopMeter::note_process(pid_t pid) {
  ++cost_.processes;
  cost_.private_bytes += proc::private_bytes(pid);
  const proc::CpuTime count = proc::cpu_time(pid);
  const auto last = last_counts_.find(pid);
  const bool is_known = last != last_counts_.end() && last->second.ran <= count.ran &&
                        last->second.waited <= count.waited &&
                        last->second.timeslices <= count.timeslices;  // else the pid was reused
  const proc::CpuTime before = is_known ? last->second : proc::CpuTime();
  const proc::CpuTime had{count.ran - before.ran, count.waited - before.waited,
                          count.timeslices - before.timeslices};
  cpu_.ran += had.ran;
  cpu_.waited += had.waited;
  counts_[pid] = count;

  const pid_t id = ::getsid(pid);
  if (id < 0) return;  // it has just ended
  SessionTime& session = sessions_[id];
  if (had.waited > session.longest.waited) session.longest = had;
  session.timeslices += had.timeslices;
}

/// The longest turn of all sessions. A single stall of the machine may dominate one interval; a
/// margin that is too long meanwhile does no harm while the lease can be renewed.
Duration StopMeter::max_turn() const {
  const int cpus = permitted_cpus();
  Duration max{};
  for (const auto& [id, session] : sessions_) max = std::max(max, turn_of(session, cpus));
  return max;
}

/// The second longest of the latest delays. A machine that is short of CPU delays every timer. A
/// single delay, because the machine paused or another process stopped us for a moment, is no
/// reason to stop a command whose lease can be renewed.
Duration StopMeter::usual_delay() const noexcept {
  auto sorted = latest_;
  std::sort(sorted.begin(), sorted.end());
  return sorted.at(sorted.size() - 2);
}

Delay StopMeter::worst_delay() const noexcept {
  return current_.length > previous_.length ? current_ : previous_;
}

}  // namespace redlock::guard
