#pragma once

#include <algorithm>
#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "child/command.hpp"
#include "child/isolation.hpp"
#include "child/pid_namespace.hpp"
#include "child/shared_page.hpp"
#include "child/signal_times.hpp"
#include "child/signals.hpp"
#include "child/stop_hook.hpp"
#include "child/stop_meter.hpp"
#include "child/stop_plan.hpp"
#include "child/tree.hpp"
#include "support/clock.hpp"

namespace redlock::child {

/// Who has got a signal already that is passed on, as far as can be told.
enum class Reached {
  none,
  job,        ///< all that is in the job's process group, the command being in it
  everything  ///< all of ours, one by one: the manager of our control group sent it
};

/// How a command ended.
struct CommandEnd {
  std::optional<int> status;  ///< of the command, as waitpid gives it; nullopt: it tells nothing
  /// Why it was stopped; nullopt: it ended by itself. `lease` also when the lease had ended before
  /// the command was seen to end; with OnLost::warn it ran on then.
  std::optional<StopReason> stopped;
  bool unkillable = false;   ///< the lease ended, and a process of the tree could not be killed
  Duration late{};           ///< how long after the deadline the last of the tree was seen dead;
                             ///< zero: in time, or not promised
  std::vector<pid_t> left;   ///< descendants that still run; unless it is unkillable, without
                             ///< those that were killed or are on the way out, and processes of
                             ///< ours that only keep or release another lease
  std::vector<pid_t> swept;  ///< descendants that the command left running, killed with their pid
                             ///< namespace
  std::string hook_failure;  ///< StopHook::failure()
};

/// Events that the user should learn of while they happen.
struct SupervisorEvents {
  /// The command itself has ended; its descendants may live on. `told_to_end`: a guard sent it
  /// the stop signal.
  std::function<void(bool told_to_end)> ended;
  /// The stop signal was sent; with the longest recent delay of this process; reported once.
  std::function<void(StopReason, const Delay&)> stopping;
  /// These survive KILL; reported after a second, then every minute.
  std::function<void(const std::vector<pid_t>&)> unkillable;
  /// A signal ended the command; the lease is kept until these processes of its group have ended,
  /// too. Reported once, a second later.
  std::function<void(const std::vector<pid_t>&)> awaiting;
  /// Stopping may take longer than the ttl allows; reported once.
  std::function<void(const StopCost&, Duration needed)> strained;
};

/// The holder process's guard over the command: never lets it outlive the lease. It knows the lease
/// by its deadline alone; other code renews the lease and reports that here.
///
/// The stop signal and CONT go to the whole tree at deadline - grace - margin, KILL at deadline -
/// margin, repeated until the tree is empty. The margin grows with the measurements (StopMeter). A
/// stop signal that was sent is final. A lease that is lost stops the command at once, with KILL
/// after the grace or at deadline - margin, whichever is sooner. So does the end of max_hold, while
/// the lease is kept until the tree is dead, and stop_for(); of these and a loss, the first
/// decides. When another guard is gone, KILL is sent at once.
///
/// A signal that ends a shell at once reaches the step that it runs as well, and that may take a
/// while to stop. So a command that a signal has ended counts as ended only when what is left of
/// its process group has ended, too, whatever is to become of other descendants. A signal that the
/// command alone got is followed by the stop signal to its group. After KILL it takes two seconds
/// before anything is left running: the front process may be killed next. A pid namespace ends with
/// the command: processes that the command leaves running in it are killed.
///
/// A StopHook starts beside the stop signal, or when a TERM, INT or HUP is passed on. Nothing
/// counts as ended before it has; KILL to the tree ends it. When another guard is gone, or after a
/// signal that was passed on, it has until deadline - margin, as that was when it started.
class Supervisor {
 public:
  /// All must outlive it.
  Supervisor(const Clock& clock, StopPlan plan, SharedPage& page, const Isolation& isolation,
             SupervisorEvents events);

  /// Forks the command, ready to start. Not after start(). `hook`: what to run when it is stopped;
  /// nullopt: nothing. `inherited` must outlive this.
  Result<void, ExecFailure> prepare(const Command& command, SpawnOptions options,
                                    const InheritedSignals& inherited,
                                    std::optional<Command> hook = std::nullopt);

  /// After finish(): kills all that is left. True when nothing is left.
  asio::awaitable<bool> kill_rest();

  /// After finish(): stops all that is left, as at the end of max_hold. True when nothing is left.
  asio::awaitable<bool> stop_rest();

  /// The command, from prepare() on.
  [[nodiscard]] pid_t command() const noexcept { return pid_; }

  /// Publishes the deadline: from here on both guards watch over what is prepared. `granted`:
  /// max_hold counts from there.
  void arm(Instant deadline, Instant granted);

  /// Why it is being stopped, or is about to be; nullopt: it is not.
  [[nodiscard]] std::optional<StopReason> stopped() const noexcept { return stopped_; }

  /// When max_hold ends; Instant::max(): it has no end.
  [[nodiscard]] Instant hold_until() const noexcept { return hold_until_; }

  /// Starts the command under the lease that it was armed with. False: the deadline is too near to
  /// run in; then nothing was started.
  Result<bool, ExecFailure> start();

  /// Drops a command that was prepared and not started.
  void drop();

  /// The lease was extended. Only forward; the guards watch over nothing any more after finish().
  void move_deadline(Instant deadline);

  /// The lease is renewed next at `until`: what stopping takes need not be measured before.
  void put_off_measuring(Instant until) { meter_.put_off(until); }

  /// The lease has ended: it was lost, or its deadline has passed.
  void lease_is_lost();

  /// The command is to end although the lease stands: stop signal, KILL after the grace, while the
  /// lease is kept until the tree is dead. Nothing when it is being stopped already.
  void stop_for(StopReason why);

  /// Another process that guards the command was killed: finish() sends KILL to the tree at once.
  void kill(StopReason why);

  /// Passes a signal on to the command: where it leads a process group, and SignalTo says so, to
  /// that; else to it alone. When it has ended, to the processes that are waited for. Not to what
  /// has got it already.
  void pass_on(int signal, Reached reached);

  /// These signals were sent to the command, or to us for it, whether or not it got them.
  void note_signals(SignalMask signals) {
    signals_.note_all(signals, clock_.now());
    event_->notify();
  }

  /// A child changed its state (SIGCHLD): it ended, stopped or continued.
  void on_child();

  /// Waits for the end. Call it after start().
  asio::awaitable<CommandEnd> finish();

  /// After finish(): removes those of `left` that end within 50 ms after the command, being killed
  /// or on the way out. Returns when that time has passed, or none is left.
  asio::awaitable<void> settle(std::vector<pid_t>& left);

 private:
  void reap();
  [[nodiscard]] std::optional<StopReason> reason_to_stop(Instant now) const;
  void stop(StopReason reason, Instant now);
  void measure(Instant now);
  void set_margin(Duration margin);
  void disarm();
  void end_namespace();
  asio::awaitable<bool> kill_all();
  asio::awaitable<void> kill_all_but_hook();
  void start_hook(std::string_view reason, Instant until);
  [[nodiscard]] bool is_told_to_end() const;
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] Instant next_instant() const {
    return is_stopping() ? *kill_at_ : std::min({terminate_at(), hold_until_, meter_.next()});
  }
  [[nodiscard]] Instant next_poll(Instant now) const;

  /// The command has ended by itself: whether the processes that it left may stay, too.
  [[nodiscard]] bool may_leave(Instant now) const;
  void tell_rest_to_end(Instant now);
  void note_end(int status);
  [[nodiscard]] bool asks_to_end(int signal) const noexcept;
  [[nodiscard]] bool was_ended_by_signal(int status) const;
  void pass_on_to_command(int signal, Reached reached);
  void pass_on_to_rest(int signal, Reached reached);
  [[nodiscard]] std::vector<pid_t> rest_of_group() const;
  [[nodiscard]] bool is_stopping() const noexcept { return kill_at_.has_value(); }
  [[nodiscard]] Instant kill_by() const { return deadline_ - margin_; }
  [[nodiscard]] Instant terminate_at() const { return kill_by() - plan_.grace; }
  [[nodiscard]] Instant grace_end(Instant now) const {
    return std::min(now + plan_.grace, kill_by());
  }

  const Clock& clock_;
  StopPlan plan_;
  SharedPage& page_;
  const Isolation& isolation_;
  SupervisorEvents events_;
  ProcessTree tree_;
  StopHook hook_;
  StopMeter meter_;
  Duration margin_;
  std::unique_ptr<Event> event_;
  std::optional<PidNamespace> pid_namespace_;
  std::optional<ReadyCommand> ready_;
  Instant deadline_;
  Instant hold_until_ = Instant::max();
  std::optional<StopReason> asked_to_stop_;  ///< stop_for()
  std::optional<Instant> kill_at_;           ///< set by the stop signal; Instant::max(): never
  std::optional<int> status_;
  Instant started_at_;
  Instant ended_at_;              ///< when the command was seen to end
  Instant may_leave_at_;          ///< the processes that it left
  SignalTimes signals_;           ///< sent to the command, as far as this process knows
  bool signalled_alone_ = false;  ///< the command got one, and its group did not
  bool group_was_told_ = false;   ///< its group got the stop signal
  bool awaits_group_ = false;     ///< a signal has ended the command
  Instant tell_awaited_at_;       ///< when the user learns of that
  pid_t pid_ = 0;
  pid_t group_ = 0;  ///< of the command; the last one, once it has ended
  bool leads_group_ = false;
  pid_t joined_group_ = 0;             ///< our job's, which the command was started in; 0: none
  bool armed_ = false;                 ///< the page has the deadline
  std::optional<StopReason> stopped_;  ///< CommandEnd::stopped
  bool strained_ = false;              ///< already reported
};

}  // namespace redlock::child
