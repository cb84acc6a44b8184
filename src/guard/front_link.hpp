#pragma once

#include <sys/types.h>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "guard/channel.hpp"
#include "guard/shield.hpp"
#include "guard/signals.hpp"
#include "guard/supervisor.hpp"
#include "proc/signal_state.hpp"
#include "support/clock.hpp"
#include "support/readable.hpp"

namespace redlock::guard {

/// The holder process's side of its connection to the front process. It receives the signals that
/// the front process passes on, does its half of job control (job_control.hpp), notices when the
/// front process or the shield is killed, and reports to the front process. Single-threaded.
class FrontLink : public std::enable_shared_from_this<FrontLink> {
 public:
  /// `front`: the front process, which is not our parent when there is a Shield. `job_group`: the
  /// process group that the command joins; nullopt: it gets one of its own. `interrupt` is raised
  /// by a signal that ends a wait, and when the front process or the shield was killed. It, `gate`
  /// and `clock` must outlive the executor's run().
  FrontLink(asio::any_io_executor executor, const Clock& clock, Interrupt& interrupt,
            Channel channel, SignalGate& gate, pid_t front,
            std::optional<pid_t> job_group = std::nullopt);

  /// Starts reading. `shield`: as become_shield() returned it.
  void start(Shield shield = {});

  // --- Before the command starts ---

  /// Asks the front process whether the command may start. False when it does not answer within
  /// half a second, because it is paused (^Z) or gone.
  asio::awaitable<bool> may_start();

  /// After may_start() was false: waits until the front process continues, or is gone. Afterwards
  /// signals end a wait again.
  asio::awaitable<void> until_continued();

  // --- While it runs ---

  /// From here on signals are passed on to the command. Both must outlive the executor's run().
  void command_started(Supervisor& supervisor, SharedPage& page);

  /// The command itself has ended; its supervisor still learns of descendants that end later.
  /// `got_stop_signal`: a guard sent it the stop signal. Takes into account what was sent to the
  /// other guards before: one may have been killed but not have died yet, or have a signal pending.
  /// Blocks for at most two milliseconds per guard.
  void command_ended(bool got_stop_signal);

  [[nodiscard]] std::optional<pid_t> job_group() const noexcept { return job_group_; }

  /// The last signal that ended a wait, passed on while no command ran; 0: none.
  [[nodiscard]] int wait_ended_by() const noexcept { return wait_ended_by_; }

  /// Which other guard was killed first; nullopt: none. After that the command is killed, and no
  /// wait continues.
  [[nodiscard]] std::optional<StopReason> killed_guard() const noexcept { return killed_guard_; }

  // --- Reports to the front process ---

  /// Sends NAME=value for the service manager. Only one message is in flight, because a stopped
  /// front process reads none; meanwhile the newest value of each name is kept.
  void notify_service(const std::string& name, std::string value);

  /// Sends the final report: what to exit with, or the signal to die of (0: none), and the text for
  /// --status-fd or stdout. False when it cannot be sent.
  bool report(int exit_code, int signal, std::string text);

  /// After report(): true once the front process confirms that the script has received it; false if
  /// the front process ends without that, or after give_up_hand_over().
  asio::awaitable<bool> until_handed_over();
  void give_up_hand_over();

 private:
  asio::awaitable<void> listen_to_front();
  asio::awaitable<void> listen_to_shield();
  asio::awaitable<void> read_signals();
  void read_pending_signals();
  void on_message(const Message& message);
  void take_signal(const PassedSignal& signal);
  void on_child();
  void on_guard_killed(StopReason which);
  proc::SignalMask check_guards();
  asio::awaitable<void> pass_on(PassedSignal signal);
  asio::awaitable<Reached> reached_by(PassedSignal signal);
  asio::awaitable<bool> gets_too(PassedSignal signal, Instant until);
  asio::awaitable<bool> is_walk(int signal);
  bool take_twin(const PassedSignal& signal);
  void send(Message::Kind kind, int number = 0) const { channel_.send({kind, number, {}}); }
  void send_notification();
  [[nodiscard]] bool answered() const noexcept { return answers_ == questions_; }

  asio::any_io_executor executor_;
  const Clock& clock_;
  Interrupt& interrupt_;
  SignalGate& gate_;
  pid_t front_;
  std::optional<pid_t> job_group_;
  Channel channel_;
  Readable channel_readable_;
  Readable signals_readable_;
  Shield shield_;
  std::unique_ptr<Event> event_;  ///< notified of an answer, and of the end of the front process
  Supervisor* supervisor_ = nullptr;  ///< of the command, once that was started; else null
  SharedPage* page_ = nullptr;        ///< set while the command runs in our job and can be paused
  /// When each signal to this process was last read, by number and sender.
  std::map<std::pair<int, pid_t>, Instant> got_;
  std::set<Event*> twin_awaited_;                    ///< notified when a signal is added to got_
  std::map<std::string, std::string> notification_;  ///< not sent yet
  bool notifying_ = false;                           ///< one was sent and not confirmed yet
  int wait_ended_by_ = 0;
  int questions_ = 0;
  int answers_ = 0;  ///< the number of the last question that was answered
  bool handed_over_ = false;
  bool given_up_ = false;
  bool gone_ = false;  ///< the front process
  std::optional<StopReason> killed_guard_;
};

}  // namespace redlock::guard
