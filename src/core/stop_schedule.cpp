#include "core/stop_schedule.hpp"

#include <algorithm>

namespace redlock {
namespace {

/// How much later the second guard acts, and how long the first may take to begin killing, or to
/// make progress with it, before it is replaced: fractions of the margin, as divisors. Half of the
/// margin is left when it has not begun. One that has begun may be waiting for a CPU; the second
/// guard kills the command meanwhile, so it can have longer.
constexpr int head_start = 4;
constexpr int start_timeout = 4;
constexpr int progress_timeout = 2;

/// The second guard only reads the margin, which may grow. While a step could become due earlier
/// than known, it is asked for again after this fraction (a divisor) of the remaining time, but not
/// more often than the interval.
constexpr int recheck_divisor = 8;
constexpr Milliseconds min_recheck_interval{100};

/// The interval between two passes of the second guard in the first one's place. The pause leaves
/// the first one some CPU to kill itself.
constexpr Milliseconds help_interval{20};

/// If the margin is long, the pause between two passes may be this fraction of it (a divisor).
constexpr int max_pause_divisor = 8;

/// Instant::max() stays what it is: never.
Instant before(Instant when, Duration span) {
  return when == Instant::max() ? when : when - span;
}

}  // namespace

std::string_view word_of(StopAction action) {
  switch (action) {
    case StopAction::wait:
      return "wait";
    case StopAction::warn:
      return "warn";
    case StopAction::terminate:
      return "terminate";
    case StopAction::terminate_rest:
      return "terminate_rest";
    case StopAction::join:
      return "join";
    case StopAction::kill:
      return "kill";
    case StopAction::replace:
      return "replace";
    case StopAction::give_up:
      break;
  }
  return "give_up";
}

StopSchedule::StopSchedule(const StopPlan& plan, Guard guard)
    : plan_(plan), guard_(guard), margin_(plan.margin) {}

void StopSchedule::arm(Instant deadline, Instant granted) {
  deadline_ = deadline;
  if (plan_.max_hold) hold_until_ = later(granted, *plan_.max_hold);
}

void StopSchedule::renew(Instant deadline) {
  deadline_ = std::max(deadline_, deadline);
}

void StopSchedule::need_margin(Duration needed) {
  margin_ = std::min(needed, std::max(plan_.margin, plan_.max_margin));
}

void StopSchedule::ask(StopReason why) {
  if (!asked_) asked_ = why;
}

void StopSchedule::kill_at_once(StopReason why) {
  if (!stopped()) why_ = why;
  if (!stopping_since_) stopping_since_ = Instant();
  kills_at_once_ = true;
}

StopStep StopSchedule::step(Instant now) {
  if (!is_stopping()) {
    if (rest_must_end_) return begin(std::nullopt, now);
    if (const auto why = reason_to_stop(now)) return begin(*why, now);
    return {StopAction::wait, std::nullopt, next(now)};
  }
  if (rest_at_ != Instant::max() && (command_ended_ || now >= rest_at_)) {
    rest_at_ = Instant::max();
    return {StopAction::terminate_rest, stopped(), next(now)};
  }
  if (now < kill_at()) return {StopAction::wait, stopped(), next(now)};
  if (guard_ == Guard::second) return kill_for_other(now);
  return {StopAction::kill, stopped(), now};
}

StopStep StopSchedule::after_pass(Instant began, Instant now, bool progress) {
  if (progress) last_progress_ = now;
  help_at_ = now + help_interval;
  const Instant last =
      deadline_ == Instant::max() ? last_progress_ : std::max(deadline_, last_progress_);
  if (now >= last + death_timeout) return {StopAction::give_up, stopped(), now};

  // Dying processes need the CPU, too, so pause for as long as the pass took.
  const Duration max_pause = std::max<Duration>(max_kill_interval, margin_ / max_pause_divisor);
  return {StopAction::kill, stopped(),
          now + std::clamp<Duration>(now - began, kill_interval, max_pause)};
}

Instant StopSchedule::next(Instant now) const {
  Instant next = is_stopping() ? std::min(rest_at_, std::max(kill_at(), help_at_))
                               : std::min(terminate_at(), hold_until_);
  if (guard_ == Guard::first || next == Instant::max()) return next;
  const Duration growth = std::max(Duration::zero(), plan_.max_margin - margin_);
  const Duration interval =
      std::max<Duration>(min_recheck_interval, (next - now) / recheck_divisor);
  return std::min(next, std::max(next - growth, now + interval));
}

std::optional<StopReason> StopSchedule::stopped() const {
  const bool is_loss = lost_ && !(why_ && keeps_lease(*why_));
  return is_loss ? StopReason::lease : why_;
}

Instant StopSchedule::kill_at() const {
  if (kills_at_once_) return {};
  if (!kills_) return Instant::max();
  return guard_ == Guard::second ? kill_by() : grace_end(*stopping_since_);
}

Instant StopSchedule::grace_end(Instant now) const {
  return std::min(later(now, plan_.grace), kill_by());
}

Instant StopSchedule::kill_by() const {
  return before(deadline_, guard_ == Guard::first ? margin_ : margin_ - margin_ / head_start);
}

bool StopSchedule::leaves_time(Instant now) const {
  return now < before(kill_by(), plan_.grace);
}

Duration StopSchedule::late_by(Instant dead) const {
  const auto why = stopped();
  const bool promises_death =
      why && (keeps_lease(*why) || (*why == StopReason::lease && plan_.on_lost == OnLost::kill));
  return promises_death ? std::max(Duration::zero(), dead - deadline_) : Duration::zero();
}

/// Of two reasons, returns the one that came first: it decides how the command is stopped, and the
/// exit code.
std::optional<StopReason> StopSchedule::reason_to_stop(Instant now) const {
  if (lost_ || joins_) return StopReason::lease;
  if (asked_) return asked_;
  if (now < std::min(terminate_at(), hold_until_)) return std::nullopt;
  return hold_until_ <= terminate_at() ? StopReason::max_hold : StopReason::lease;
}

Instant StopSchedule::terminate_at() const {
  // The lease may survive an outage until its last instant: then nothing was lost.
  if (plan_.on_lost == OnLost::warn) return Instant::max();
  return before(kill_by(), plan_.grace);
}

/// `why`: nullopt: the command has ended, and its descendants must end, too.
StopStep StopSchedule::begin(std::optional<StopReason> why, Instant now) {
  // If the lease is still valid, the command must be dead before it is released, whatever --on-lost
  // says.
  const OnLost how = !why || keeps_lease(*why) ? OnLost::kill : plan_.on_lost;
  stopping_since_ = now;
  why_ = why;
  kills_ = how == OnLost::kill;
  const StopAction action = joins_                ? StopAction::join
                            : how == OnLost::warn ? StopAction::warn
                                                  : StopAction::terminate;
  const bool spares_rest =
      plan_.signal_to == SignalTo::command && guard_ == Guard::first && why && !command_ended_;
  if (action == StopAction::terminate && spares_rest)
    rest_at_ = now + std::max(Duration::zero(), grace_end(now) - now) / 2;
  return {action, why, next(now)};
}

StopStep StopSchedule::kill_for_other(Instant now) {
  const Instant due = kill_by();
  const Duration timeout = margin_ / (progress_of_other_ < due ? start_timeout : progress_timeout);
  if (now - std::max(progress_of_other_, due) >= timeout)
    return {StopAction::replace, stopped(), now};
  if (now < help_at_) return {StopAction::wait, stopped(), help_at_};

  // Only while the other makes no progress, because the processes that it kills need the CPU to
  // die.
  help_at_ = now + help_interval;
  const bool must_help = now - progress_of_other_ >= help_interval;
  return {must_help ? StopAction::kill : StopAction::wait, stopped(), help_at_};
}

}  // namespace redlock
