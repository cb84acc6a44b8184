#include "guard/process_guard.hpp"

#include <algorithm>
#include <limits>

#include "core/validity.hpp"
#include "guard/step_trace.hpp"

namespace redlock::guard {
namespace {

/// The interval between checks whether all processes are stopped.
constexpr Milliseconds still_interval{1};

/// How often to poll the processes after the stop signal: none of them is our child, so we get no
/// SIGCHLD.
constexpr Milliseconds grace_interval{10};

}  // namespace

ProcessGuard::ProcessGuard(const Clock& clock, proc::WatchedProcess& process, StopPlan plan)
    : clock_(clock),
      process_(process),
      plan_(plan),
      event_(clock.make_event()),
      schedule_(plan),
      meter_(plan.measure_interval, clock.now()) {}

void ProcessGuard::arm(Instant deadline, Instant granted) {
  schedule_.arm(deadline, granted);
}

void ProcessGuard::move_deadline(Instant deadline) {
  schedule_.renew(deadline);
  event_->notify();
}

void ProcessGuard::lease_is_lost() {
  schedule_.lose();
  event_->notify();
}

void ProcessGuard::lease_is_released() {
  released_ = true;
  event_->notify();
}

void ProcessGuard::stop_for(StopReason why) {
  schedule_.ask(why);
  event_->notify();
}

void ProcessGuard::process_has_ended() {
  event_->notify();
}

asio::awaitable<std::optional<StopReason>> ProcessGuard::until_stop_is_due() {
  while (!process_.ended() && !released_) {
    const Instant now = clock_.now();
    stop_ = schedule_.step(now);
    trace_step(stop_);
    if (stop_.action != StopAction::wait) co_return stop_.why;
    if (now >= meter_.next()) {
      measure(now);
      continue;
    }
    const Instant next = std::min(stop_.next, meter_.next());
    const bool notified = co_await event_->wait_until(next);
    if (!notified) meter_.note_timer(next, clock_.now());
  }
  co_return std::nullopt;
}

/// The processes are held still for at most half of the time until KILL, and get the signal at once
/// if that time has come.
asio::awaitable<void> ProcessGuard::send_stop_signal() {
  if (stop_.action == StopAction::warn) co_return;
  const bool ends_with_kill = schedule_.kill_at() != Instant::max();
  const auto reach =
      ends_with_kill ? proc::WatchedProcess::Reach::stopped : proc::WatchedProcess::Reach::known;
  // A process that cannot be stopped, such as one that waits for a disk, must not use up the whole
  // grace of the others.
  const Instant began = clock_.now();
  const Instant kill_at = ends_with_kill ? schedule_.kill_at() : began + plan_.grace;
  co_await hold_still(began + (kill_at - began) / 2);
  process_.signal(plan_.stop_signal, reach);
}

asio::awaitable<GuardEnd> ProcessGuard::finish() {
  GuardEnd end;
  if (schedule_.kill_at() == Instant::max()) {
    while (!process_.ended() && !schedule_.is_lost() && !released_)
      co_await event_->wait_until(Instant::max());
    co_return end;
  }
  co_await until_all_ended();
  end.left = co_await kill_all();
  end.late = schedule_.late_by(clock_.now());
  co_return end;
}

void ProcessGuard::measure(Instant now) {
  if (const auto cost = meter_.step({process_.pid()}, now))
    schedule_.need_margin(needed_margin(plan_.margin, *cost));
}

asio::awaitable<void> ProcessGuard::hold_still(Instant until) {
  while (!process_.hold_still(until) && clock_.now() < until)
    co_await sleep_until(clock_, clock_.now() + still_interval);
}

/// Descendants that outlive the process get the same grace, and must not outlive the lease either.
asio::awaitable<void> ProcessGuard::until_all_ended() {
  for (;;) {
    const Instant kill_at = schedule_.kill_at();
    if (process_.living().empty() || clock_.now() >= kill_at) co_return;
    co_await sleep_until(clock_, std::min(kill_at, clock_.now() + grace_interval));
  }
}

/// Kills until none is left, or the schedule gives up. Returns the processes that still live.
asio::awaitable<std::set<pid_t>> ProcessGuard::kill_all() {
  schedule_.begin_killing(clock_.now());
  // A process that dies while it forks would leave a child that cannot be found.
  co_await hold_still(clock_.now() + schedule_.margin() / 2);

  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (;;) {
    const Instant began = clock_.now();
    const std::set<pid_t> left = process_.living();
    const bool only_init = process_.is_init() && left.size() == 1 && !process_.ended();
    if (left.empty() || (only_init && began >= schedule_.deadline())) co_return left;

    const bool killed = process_.kill(began + death_timeout);
    const bool progress = killed || left.size() < fewest;
    fewest = std::min(fewest, left.size());
    const StopStep step = schedule_.after_pass(began, clock_.now(), progress);
    trace_step(step);
    if (step.action == StopAction::give_up) co_return process_.living();
    co_await sleep_until(clock_, step.next);
  }
}

}  // namespace redlock::guard
