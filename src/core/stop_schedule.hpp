#pragma once

#include <optional>
#include <string_view>

#include "core/stop_plan.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// The minimum time that a killed process gets to die before it counts as unkillable, even if it
/// was killed late because we or the machine were stopped. Also the limit for one pass through the
/// tree.
inline constexpr Milliseconds death_timeout{500};

/// The minimum and maximum pause between two passes through a tree that does not die at once.
inline constexpr Milliseconds kill_interval{2};
inline constexpr Milliseconds max_kill_interval{20};

/// What a guard has to do.
enum class StopAction {
  wait,            ///< nothing before `next`
  warn,            ///< report the loss; the command runs on (OnLost::warn)
  terminate,       ///< send the stop signal: to all, or to the command alone if the plan says so
  terminate_rest,  ///< send it to all but the command, which has got it
  join,            ///< as terminate, but the other guard has sent the stop signal already
  kill,            ///< kill all that is left
  replace,         ///< kill the other guard, too, which does not kill the command in time
  give_up,         ///< what is left could not be killed, and the lease has ended
};

std::string_view word_of(StopAction action);

/// One step of a stop schedule.
struct StopStep {
  StopAction action = StopAction::wait;
  std::optional<StopReason> why{};  ///< nullopt: no stop has begun, or the command ended by itself
  Instant next = Instant::max();    ///< when the next step is due, unless something happens before
};

/// When to stop a command, when to kill it, and when to give that up: the one rule of all guards.
/// Pure: what happens comes in with its instants, steps come out. Time passes only in step().
///
/// The stop signal is due at deadline - grace - margin, and KILL at deadline - margin; the margin
/// follows need_margin(). With OnLost::warn, a deadline that comes near is no loss, because the
/// lease may survive. A lost lease and a request begin the stop at once, the end of max_hold when
/// it comes, each with KILL after the grace or at deadline - margin, whichever is sooner. The first
/// of them decides; a renewal does not revoke it.
///
/// With SignalTo::command the command gets the stop signal first, and the rest when the command has
/// ended, or half of the time until KILL is over: it may need the others to end in order.
///
/// Of two guards, the second one acts a quarter of the margin later, so that the first one can act
/// before. It acts for the lease alone: it kills when its own time has come, even if the stop began
/// long before. It replaces the first guard if that does not begin to kill for another quarter of
/// the margin, or makes no progress for half of the margin.
class StopSchedule {
 public:
  enum class Guard { first, second };

  explicit StopSchedule(const StopPlan& plan, Guard guard = Guard::first);

  // --- What happens ---

  /// The command runs under a lease that was granted at `granted`; max_hold counts from there.
  void arm(Instant deadline, Instant granted);

  /// The lease was extended. An earlier deadline is ignored.
  void renew(Instant deadline);

  /// The deadline is this one, earlier or not; Instant::max(): there is no command under a lease.
  void set_deadline(Instant deadline) { deadline_ = deadline; }

  /// Stopping the command would take this long. The margin is at most the plan's max_margin.
  void need_margin(Duration needed);

  /// The margin is this one.
  void set_margin(Duration margin) { margin_ = margin; }

  /// The lease has ended: it was lost, or its deadline has passed.
  void lose() { lost_ = true; }

  /// The command must be stopped although the lease is valid. The first request counts.
  void ask(StopReason why);

  /// Another guard of the command was killed, so the command is killed at once.
  void kill_at_once(StopReason why);

  /// The command has ended by itself, and its descendants must end, too.
  void end_rest() { rest_must_end_ = true; }

  /// The command has ended, stopped or by itself.
  void command_has_ended() { command_ended_ = true; }

  /// The other guard has sent the stop signal.
  void other_has_signalled() { joins_ = true; }

  /// For the second guard: when the first one last made progress in killing; Instant(): it has not
  /// begun.
  void set_progress_of_other(Instant when) { progress_of_other_ = when; }

  // --- What to do ---

  /// The step that is due at `now`. Each of warn, terminate, terminate_rest and join is returned
  /// once; ask again at once after any step but wait.
  StopStep step(Instant now);

  /// When the next step is due, unless something happens before; Instant::max(): never.
  [[nodiscard]] Instant next(Instant now) const;

  /// Killing begins, as a step says, or of what the command has left running.
  void begin_killing(Instant now) { last_progress_ = now; }

  /// A pass through what is left began at `began` and ended at `now` without having killed all.
  /// `progress`: some process has died. Returns `kill` with the instant of the next pass, or
  /// `give_up` when the deadline has passed and there was no progress for the death_timeout.
  StopStep after_pass(Instant began, Instant now, bool progress);

  // --- What is known ---

  [[nodiscard]] Instant deadline() const noexcept { return deadline_; }
  [[nodiscard]] Duration margin() const noexcept { return margin_; }
  [[nodiscard]] bool is_lost() const noexcept { return lost_; }

  /// Whether a stop has begun: the stop signal was sent or reported, or must be skipped.
  [[nodiscard]] bool is_stopping() const noexcept { return stopping_since_.has_value(); }

  /// Why the command is being stopped or about to be; nullopt: it is not. A lease that is lost
  /// meanwhile is the reason, unless the stop was to keep the lease.
  [[nodiscard]] std::optional<StopReason> stopped() const;

  /// When to kill in a stop that has begun; Instant::max(): never. Instant(): at once, because
  /// another guard is gone.
  [[nodiscard]] Instant kill_at() const;

  /// When everything must be killed for the lease's sake: deadline - margin.
  [[nodiscard]] Instant kill_by() const;

  /// Whether a command that starts now has more than its grace before kill_by().
  [[nodiscard]] bool leaves_time(Instant now) const;

  /// How long after the deadline `dead` is, when all were dead; zero: in time, or the reason of the
  /// stop does not promise it.
  [[nodiscard]] Duration late_by(Instant dead) const;

 private:
  [[nodiscard]] Instant terminate_at() const;
  /// The end of the time that a command gets to end after a stop signal at `now`.
  [[nodiscard]] Instant grace_end(Instant now) const;
  [[nodiscard]] std::optional<StopReason> reason_to_stop(Instant now) const;
  StopStep begin(std::optional<StopReason> why, Instant now);
  StopStep kill_for_other(Instant now);

  StopPlan plan_;
  Guard guard_;
  Duration margin_;
  Instant deadline_ = Instant::max();
  Instant hold_until_ = Instant::max();  ///< when max_hold ends; Instant::max(): never
  bool lost_ = false;
  bool joins_ = false;  ///< the other guard has sent the stop signal
  bool rest_must_end_ = false;
  bool command_ended_ = false;
  Instant rest_at_ = Instant::max();  ///< when the rest gets the stop signal
  std::optional<StopReason> asked_;
  std::optional<Instant> stopping_since_;  ///< when a stop has begun
  std::optional<StopReason> why_;          ///< why it has begun
  bool kills_ = false;                     ///< it ends with KILL
  bool kills_at_once_ = false;
  Instant last_progress_;
  Instant progress_of_other_;
  Instant help_at_;  ///< when the second guard looks next whether it must kill for the first
};

}  // namespace redlock
