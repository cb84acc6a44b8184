#include "guard/process_guard.hpp"

#include <algorithm>
#include <limits>

#include "core/validity.hpp"

namespace redlock::guard {
namespace {

/// The interval between checks whether all processes are stopped.
constexpr Milliseconds still_interval{1};

/// How often to poll the processes after the stop signal: none of them is our child, so we get no
/// SIGCHLD.
constexpr Milliseconds grace_interval{10};

}  // namespace

ProcessGuard::ProcessGuard(const Clock& clock, proc::WatchedProcess& process, StopPlan plan,
                           ProcessGuardEvents events)
    : clock_(clock),
      process_(process),
      plan_(plan),
      events_(std::move(events)),
      event_(clock.make_event()),
      meter_(plan.measure_interval, clock.now()),
      margin_(plan.margin) {}

void ProcessGuard::arm(Instant deadline, Instant granted) {
  deadline_ = deadline;
  if (plan_.max_hold) hold_until_ = later(granted, *plan_.max_hold);
}

void ProcessGuard::move_deadline(Instant deadline) {
  deadline_ = std::max(deadline_, deadline);
  event_->notify();
}

void ProcessGuard::lease_is_lost() {
  end_lease(LeaseFate::lost);
}

void ProcessGuard::lease_is_released() {
  end_lease(LeaseFate::released);
}

void ProcessGuard::end_lease(LeaseFate how) {
  lease_ = how;
  event_->notify();
}

void ProcessGuard::stop_on_request() {
  if (const Instant now = clock_.now(); now < hold_until_) {
    hold_until_ = now;
    end_of_hold_ = StopReason::request;
  }
  event_->notify();
}

void ProcessGuard::process_has_ended() {
  event_->notify();
}

asio::awaitable<GuardEnd> ProcessGuard::guard() {
  GuardEnd end;
  const std::optional<StopReason> reason = co_await until_stop_is_due();
  if (!reason) co_return end;
  const Instant grace_end = clock_.now() + plan_.grace;
  events_.before_stop(*reason);

  // If the lease is still valid, the process must be dead before it is released, whatever --on-lost
  // says.
  const OnLost how = keeps_lease(*reason) ? OnLost::kill : plan_.on_lost;
  if (how == OnLost::kill) {
    const Instant kill_at = std::min(grace_end, deadline_ - margin_);
    co_await send_stop_signal(kill_at, proc::WatchedProcess::Reach::stopped);
    events_.stopping(*reason);
    co_await until_all_ended(kill_at);
    end.left = co_await kill_all();
    end.late = std::max(Duration::zero(), clock_.now() - deadline_);
    co_return end;
  }

  if (how == OnLost::term)
    co_await send_stop_signal(clock_.now() + plan_.grace, proc::WatchedProcess::Reach::known);
  events_.stopping(*reason);
  while (!process_.ended() && lease_ == LeaseFate::valid)
    co_await event_->wait_until(Instant::max());
  co_return end;
}

/// Waits until the process must be stopped, and returns why; nullopt: it has ended, or its lease
/// was released.
asio::awaitable<std::optional<StopReason>> ProcessGuard::until_stop_is_due() {
  while (!process_.ended() && lease_ != LeaseFate::released) {
    const Instant now = clock_.now();
    if (const auto reason = reason_to_stop(now)) co_return reason;
    if (now >= meter_.next()) {
      measure(now);
      continue;
    }
    const Instant next = std::min({terminate_at(), hold_until_, meter_.next()});
    if (!co_await event_->wait_until(next)) meter_.note_timer(next, clock_.now());
  }
  co_return std::nullopt;
}

/// With OnLost::warn, only a lease that is known to be lost is a reason to stop.
Instant ProcessGuard::terminate_at() const {
  return plan_.on_lost == OnLost::warn ? Instant::max() : deadline_ - margin_ - plan_.grace;
}

/// Of two reasons, returns the one that came first.
std::optional<StopReason> ProcessGuard::reason_to_stop(Instant now) const {
  if (lease_ == LeaseFate::lost) return StopReason::lease;
  if (now < std::min(terminate_at(), hold_until_)) return std::nullopt;
  return hold_until_ <= terminate_at() ? end_of_hold_ : StopReason::lease;
}

void ProcessGuard::measure(Instant now) {
  const auto cost = meter_.step({process_.pid()}, now);
  if (!cost) return;
  const Duration needed = needed_margin(plan_.margin, *cost);
  margin_ = std::min(needed, std::max(plan_.margin, plan_.max_margin));
}

/// Holds the processes still for at most half of the time until `kill_at`, then sends the stop
/// signal and CONT. Sends it at once if `kill_at` has passed.
asio::awaitable<void> ProcessGuard::send_stop_signal(Instant kill_at,
                                                     proc::WatchedProcess::Reach reach) {
  // A process that cannot be stopped, such as one that waits for a disk, must not use up the whole
  // grace of the others.
  const Instant began = clock_.now();
  co_await hold_still(began + (kill_at - began) / 2);
  process_.signal(plan_.stop_signal, reach);
}

asio::awaitable<void> ProcessGuard::hold_still(Instant until) {
  while (!process_.hold_still(until) && clock_.now() < until)
    co_await sleep_until(clock_, clock_.now() + still_interval);
}

/// Descendants that outlive the process get the same grace, and must not outlive the lease either.
asio::awaitable<void> ProcessGuard::until_all_ended(Instant kill_at) {
  while (!process_.living().empty() && clock_.now() < kill_at)
    co_await sleep_until(clock_, std::min(kill_at, clock_.now() + grace_interval));
}

/// Kills until none is left, or the deadline has passed and killing has made no progress for the
/// death timeout. Returns the processes that still live.
asio::awaitable<std::set<pid_t>> ProcessGuard::kill_all() {
  // A process that dies while it forks would leave a child that cannot be found.
  const Instant began = clock_.now();
  co_await hold_still(began + margin_ / 2);

  Instant last_progress = began;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (;;) {
    std::set<pid_t> left = process_.living();
    if (left.size() < fewest) last_progress = clock_.now();
    fewest = std::min(fewest, left.size());
    // The deadline moves while the lease can be renewed, so compute this each time.
    const Instant last = std::max(deadline_, last_progress + death_timeout);
    if (left.empty() || clock_.now() >= last) co_return left;
    const bool only_init = process_.is_init() && left.size() == 1 && !process_.ended();
    if (only_init && clock_.now() >= deadline_) co_return left;
    if (process_.kill(clock_.now() + death_timeout)) last_progress = clock_.now();
    co_await sleep_until(clock_, clock_.now() + kill_interval);
  }
}

}  // namespace redlock::guard
