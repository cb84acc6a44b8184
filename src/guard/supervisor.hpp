#pragma once

#include <asio/awaitable.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/stop_plan.hpp"
#include "core/stop_schedule.hpp"
#include "guard/command.hpp"
#include "guard/isolation.hpp"
#include "guard/pid_namespace.hpp"
#include "guard/shared_page.hpp"
#include "guard/signal_record.hpp"
#include "guard/signals.hpp"
#include "guard/stop_hook.hpp"
#include "guard/stop_meter.hpp"
#include "guard/tree.hpp"
#include "guard/tree_witness.hpp"
#include "proc/signal_state.hpp"
#include "support/clock.hpp"

namespace redlock::guard {

/// Which processes a signal has already reached when it is passed on, as far as we can know.
enum class Reached {
  none,
  job,        ///< every process in the job's process group, which includes the command
  everything  ///< every process of ours, one by one: from the manager of our control group, or
              ///< from a process that walks the process tree
};

/// How a command ended.
struct CommandEnd {
  std::optional<int> status;  ///< wait status of the command; nullopt: a process was unkillable
  /// Why it was stopped; nullopt: it ended by itself. Also `lease` if the command was seen to end
  /// only after the lease had ended; with OnLost::warn it ran on without the lock.
  std::optional<StopReason> stopped;
  bool interrupted = false;  ///< a signal that asks the command to end had been passed on to it, or
                             ///< had reached it, before its end was seen
  bool unkillable = false;   ///< a process of the tree could not be killed before the lease ended
  Duration late{};  ///< how long after the deadline the last process of the tree was seen dead;
                    ///< zero: in time, or the plan did not promise it
  /// Descendants that still run. Unless `unkillable`, without those that are dying, and without our
  /// own processes that keep or release another lease.
  std::vector<pid_t> left;
  bool all_dead = false;  ///< the kernel confirms that no process of the tree is left
  std::string swept;      ///< the processes that the command left running and that were killed with
                          ///< their pid namespace, as proc::processes_text() names living ones
  std::string hook_failure;  ///< StopHook::failure()
};

/// What the user should learn of at once while a Supervisor guards a command.

/// The stop signal was sent. At most once.
struct StopBegan {
  StopReason why;
  Delay delay;  ///< the longest recent one of this process
};

/// These processes survive KILL. After a second, then every minute.
struct SurvivesKill {
  std::vector<pid_t> pids;
};

/// A signal ended the command; the lease is kept until these processes of its group have ended,
/// too. At most once, a second later.
struct AwaitsGroup {
  std::vector<pid_t> pids;
};

/// Stopping may take longer than the ttl allows. At most once.
struct IsStrained {
  StopCost cost;
  Duration needed;
};

using CommandNews = std::variant<StopBegan, SurvivesKill, AwaitsGroup, IsStrained>;

/// Guards the command in the holder process: it never lets the command outlive the lease. It knows
/// only the deadline of the lease; other code renews the lease and calls move_deadline().
///
/// The StopSchedule decides when the stop signal and CONT go to the whole tree, and when KILL,
/// which is repeated until the tree is empty. Its margin grows with the measurements (StopMeter).
/// The end of max_hold and stop_for() keep the lease until the tree is dead. When another guard is
/// gone, KILL is sent at once.
///
/// A signal that ends a shell at once also reaches the step that the shell runs, and that may need
/// a while to stop. So a command that was ended by a signal counts as ended only when the rest of
/// its process group has ended, too, whatever the plan says of other descendants. A signal that
/// only the command received is followed by the stop signal to its group. If the command was ended
/// by KILL, two seconds pass before any process is left running, because the front process may be
/// killed next. A pid namespace ends with the command: processes that the command leaves running in
/// it are killed.
///
/// A StopHook starts together with the stop signal, or when a TERM, INT or HUP is passed on. The
/// command does not count as ended before the hook has ended; KILL to the tree ends it. When
/// another guard is gone, or after a signal that was passed on, it may run until deadline - margin,
/// computed when it started.
class Supervisor {
 public:
  /// All must outlive it. `on_end` is called when the command itself has ended, while its
  /// descendants may live on, and may call note_signals(). `got_stop_signal`: a guard sent it the
  /// stop signal.
  Supervisor(const Clock& clock, StopPlan plan, SharedPage& page, const Isolation& isolation,
             std::function<void(bool got_stop_signal)> on_end);

  /// The next news; one coroutine at a time. Those that were not waited for stay until
  /// take_news(), which returns nullopt if there are none.
  asio::awaitable<CommandNews> next_news();
  std::optional<CommandNews> take_news();

  /// Forks the command, ready to start. Do not call it after start(). `hook`: what to run when it
  /// is stopped; nullopt: no hook. `inherited` must outlive this.
  Result<void, ExecFailure> prepare(const Command& command, SpawnOptions options,
                                    const InheritedSignals& inherited,
                                    std::optional<Command> hook = std::nullopt);

  /// The pid of the command; 0 before start().
  [[nodiscard]] pid_t command() const noexcept { return pid_; }

  /// Publishes the deadline: from here on both guards watch the prepared command. `granted`: when
  /// the lease was granted; max_hold counts from there.
  void arm(Instant deadline, Instant granted);

  /// Why the command is being stopped or about to be; nullopt: it is not.
  [[nodiscard]] std::optional<StopReason> stopped() const { return schedule_.stopped(); }

  /// Starts the command under the lease given to arm(). False: the deadline is too near, and
  /// nothing was started.
  Result<bool, ExecFailure> start();

  /// Discards a command that was prepared and not started.
  void drop();

  /// The lease was extended. An earlier deadline is ignored. After finish() it is no longer
  /// published to the front process.
  void move_deadline(Instant deadline);

  /// The lease is renewed next at `until`, so nothing needs to be measured before.
  void put_off_measuring(Instant until) { meter_.put_off(until); }

  /// The lease has ended: it was lost, or its deadline has passed.
  void lease_is_lost();

  /// Stops the command although the lease is valid: stop signal, then KILL after the grace; the
  /// lease is kept until the tree is dead. Has no effect if the command is being stopped already.
  void stop_for(StopReason why);

  /// Another guard of the command was killed: finish() sends KILL to the tree at once.
  void kill(StopReason why);

  /// Passes a signal on to the process group that the command leads or that was made for it, if
  /// SignalTo says so, else to the command alone; after its end, to the processes that are waited
  /// for. Skips the processes that it has reached already. The stop signal replaces a TERM.
  void pass_on(int signal, Reached reached);

  /// Whether a sender that signals processes one by one, this process among them, has reached the
  /// command, too, because it walks the process tree. In doubt it has not.
  [[nodiscard]] bool was_walked(int signal);

  /// Records that these signals were sent to the command, or to us for it, whether or not they
  /// reached it.
  void note_signals(proc::SignalMask signals) {
    signals_.note(signals, clock_.now());
    event_->notify();
  }

  /// A child has ended, stopped or continued (SIGCHLD).
  void on_child();

  /// Waits until the command and the processes that must end with it have ended, and stops them
  /// when that is due. Call it once, after start().
  asio::awaitable<CommandEnd> finish();

  /// After finish(): removes from `left` the processes that end within 50 ms after the command,
  /// because they were already dying. Returns when that time has passed, or none is left.
  asio::awaitable<void> settle(std::vector<pid_t>& left);

 private:
  /// How the command itself ended.
  struct Ending {
    int status;
    Instant at;                  ///< when it was seen to end
    bool interrupted = false;    ///< CommandEnd::interrupted
    bool by_signal = false;      ///< so the rest of its group is waited for
    Instant rest_may_stay_at{};  ///< when the processes that it left may continue
  };

  asio::awaitable<bool> until_over();
  [[nodiscard]] bool sends_to_command_alone() const;
  void stop(const StopStep& step);
  void tend(Instant now);
  void end_tree_witness();
  [[nodiscard]] CommandEnd make_end(bool dead, Instant over) const;

  void reap();
  void note_end(int status, Instant now);
  void add_news(CommandNews news);
  void measure(Instant now);
  void disarm();
  void end_namespace();
  asio::awaitable<bool> kill_tree();
  asio::awaitable<bool> kill_all();
  asio::awaitable<void> kill_all_but_hook();
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] Instant next_poll(Instant now, Instant next) const;

  /// The command has ended by itself: whether the processes that it left may continue.
  [[nodiscard]] bool rest_may_stay(Instant now) const;
  [[nodiscard]] int sent_for(int signal) const;
  void pass_on_to_command(int signal, Reached reached);
  void pass_on_to_rest(int signal, Reached reached);
  [[nodiscard]] bool awaits_group() const noexcept { return ended_ && ended_->by_signal; }
  [[nodiscard]] std::vector<pid_t> groups_of_command() const;
  [[nodiscard]] std::vector<pid_t> rest_of_group() const;
  [[nodiscard]] std::vector<pid_t> rest_of_made_group() const;
  [[nodiscard]] bool has_stop_signal(pid_t pid) const;

  const Clock& clock_;
  StopPlan plan_;
  SharedPage& page_;
  const Isolation& isolation_;
  std::function<void(bool)> on_end_;
  std::deque<CommandNews> news_;     ///< not taken yet
  std::unique_ptr<Event> has_news_;  ///< notified of each of them
  StopSchedule schedule_;
  SignalRecord signals_;
  ProcessTree tree_;
  TreeWitness tree_witness_;
  StopHook hook_;
  StopMeter meter_;
  std::unique_ptr<Event> event_;
  std::optional<PidNamespace> pid_namespace_;
  std::optional<ReadyCommand> ready_;
  std::optional<Ending> ended_;
  Instant report_awaiting_at_ = Instant::max();  ///< when to report that its group is waited for
  pid_t pid_ = 0;
  pid_t group_ = 0;  ///< process group of the command; once it has ended, its last one
  std::optional<CommandReach> passed_on_to_;  ///< what got the last stop signal, if that was
                                              ///< passed on to a group of the command
  pid_t made_group_ = 0;    ///< the group that was made for it; 0: it was started in our job's
  pid_t joined_group_ = 0;  ///< our job's group, if the command was started in it; 0: it was not
  bool armed_ = false;      ///< the deadline is published in the page
  bool strained_ = false;   ///< already reported
};

}  // namespace redlock::guard
