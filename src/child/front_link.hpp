#pragma once

#include <sys/types.h>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "child/channel.hpp"
#include "child/shield.hpp"
#include "child/signal_state.hpp"
#include "child/signals.hpp"
#include "child/supervisor.hpp"
#include "support/clock.hpp"
#include "support/readable.hpp"

namespace redlock::child {

/// The holder process's side of its connection to the front process: the signals that the front
/// process passes on, ^Z, fg and bg (see job_control.hpp), whether the other guards still live, and
/// what the front process is told. Single-threaded.
class FrontLink : public std::enable_shared_from_this<FrontLink> {
 public:
  struct Handlers {
    /// A signal that ends a wait was passed on, and no command runs that should get it.
    std::function<void(int signal)> wait_ended;
    /// The front process or the shield was killed. Each is reported once, after the supervisor of
    /// a command that runs was told.
    std::function<void()> guard_gone;
    /// A signal was passed on to the command; `reached`: who has got it from its sender.
    std::function<void(int signal, Reached reached)> passed_on{};
  };

  /// `gate` and `clock` must outlive the executor's run(). `front`: the front process; under a
  /// Shield it is not our parent. `job_group`: the process group that the command joins; nullopt:
  /// one of its own.
  FrontLink(asio::any_io_executor executor, const Clock& clock, Channel channel, SignalGate& gate,
            pid_t front, std::optional<pid_t> job_group = std::nullopt);

  /// Starts reading. `shield`: as become_shield() returned it.
  void start(Handlers handlers, Shield shield = {});

  // --- Before the command starts ---

  /// Asks the front process whether the command may start. False when it does not answer at once:
  /// it is paused (^Z), or gone.
  asio::awaitable<bool> may_start();

  /// After may_start() was false: waits until the front process continues (or is gone). From then
  /// on signals end a wait again.
  asio::awaitable<void> until_continued();

  // --- While it runs ---

  /// From here on signals are for the command. Both must outlive the executor's run().
  void command_started(Supervisor& supervisor, SharedPage& page);

  /// The command itself has ended; its supervisor still learns of descendants that end later.
  /// `told_to_end`: a guard sent it the stop signal. What was sent to the guards before that
  /// counts: one of them may have been killed without having ended yet, or have a signal that it
  /// has not read. Blocks for at most two milliseconds each.
  void command_ended(bool told_to_end);

  /// Passes a signal on as if the front process had sent it: a parent run did.
  void take_signal(const PassedSignal& signal);

  [[nodiscard]] std::optional<pid_t> job_group() const noexcept { return job_group_; }

  /// The other guard that was killed, if one was. Then what runs is killed, and no wait goes on.
  [[nodiscard]] std::optional<StopReason> killed_guard() const noexcept { return killed_guard_; }

  // --- What the front process is told ---

  /// For the service manager: NAME=value. One message is under way at a time, since a stopped front
  /// process reads none; meanwhile the newest value of each name is kept.
  void notify_service(const std::string& name, std::string value);

  /// Sends the final report: what to exit with, or the signal to die of (0: none), and the text for
  /// --status-fd or stdout. False when it cannot be sent.
  bool report(int exit_code, int signal, std::string text);

  /// After report(): true when the front process confirms that the script has it; false when the
  /// front process ended without that, or after give_up_hand_over().
  asio::awaitable<bool> until_handed_over();
  void give_up_hand_over();

 private:
  asio::awaitable<void> listen_to_front();
  asio::awaitable<void> listen_to_shield();
  asio::awaitable<void> read_signals();
  void read_pending_signals();
  void on_message(const Message& message);
  void on_child();
  void on_guard_killed(StopReason which);
  SignalMask look_at_guards();
  asio::awaitable<void> pass_on(PassedSignal signal);
  asio::awaitable<Reached> reached_by(PassedSignal signal);
  asio::awaitable<bool> gets_too(PassedSignal signal, Instant until);
  bool take_twin(const PassedSignal& signal);
  void send(Message::Kind kind, int number = 0) const { channel_.send({kind, number, {}}); }
  void send_notification();
  [[nodiscard]] bool answered() const noexcept { return answers_ == questions_; }

  asio::any_io_executor executor_;
  const Clock& clock_;
  SignalGate& gate_;
  pid_t front_;
  std::optional<pid_t> job_group_;
  Channel channel_;
  Readable channel_readable_;
  Readable signals_readable_;
  Shield shield_;
  std::unique_ptr<Event> event_;  ///< notified at an answer and at the end
  Handlers handlers_;
  Supervisor* supervisor_ = nullptr;              ///< of the command, once it was started
  SharedPage* page_ = nullptr;                    ///< the same; while it can be paused in our job
  std::map<std::pair<int, pid_t>, Instant> got_;  ///< signals to this process by number and sender,
                                                  ///< and when they were last read
  std::set<Event*> twin_awaited_;                 ///< to be notified of them
  std::map<std::string, std::string> notification_;  ///< not sent yet
  bool notifying_ = false;                           ///< one is under way
  int questions_ = 0;
  int answers_ = 0;  ///< the number of the last question that was answered
  bool handed_over_ = false;
  bool given_up_ = false;
  bool gone_ = false;  ///< the front process
  std::optional<StopReason> killed_guard_;
};

}  // namespace redlock::child
