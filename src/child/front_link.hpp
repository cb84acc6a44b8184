#pragma once

#include <sys/types.h>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "child/channel.hpp"
#include "child/shield.hpp"
#include "child/signal_pump.hpp"
#include "child/signal_state.hpp"
#include "support/clock.hpp"
#include "support/readable.hpp"

namespace redlock::child {

/// The holder process's view of the front process: the signals that it passes on, and whether it
/// still lives. Single-threaded.
class FrontLink : public std::enable_shared_from_this<FrontLink> {
 public:
  struct Handlers {
    std::function<void(const PassedSignal&)> signal;  ///< for the wait, or for the command
    std::function<void()> child;                      ///< a child changed its state: SIGCHLD
    std::function<void()> front_gone;     ///< the front process was killed; reported once
    std::function<void()> shield_gone{};  ///< the shield was killed; reported once
  };

  /// `gate` and `clock` must outlive the executor's run(). `front`: the front process; under a
  /// Shield it is not our parent.
  FrontLink(asio::any_io_executor executor, const Clock& clock, Channel channel, SignalGate& gate,
            pid_t front);

  /// Starts reading. `shield`: as become_shield() returned it.
  void start(Handlers handlers, Shield shield = {});

  /// Asks whether the command may start; true when the front process agrees before `timeout` ends.
  /// A front process that is paused (^Z) does not answer.
  asio::awaitable<bool> may_start(Instant timeout);

  /// After may_start() was false: waits until the front process continues (or is gone).
  asio::awaitable<void> until_continued();

  /// After report(): true when the front process confirms that the script has it; false when the
  /// front process ended without that, or after give_up_hand_over().
  asio::awaitable<bool> until_handed_over();
  void give_up_hand_over();

  [[nodiscard]] bool gone() const noexcept { return gone_; }

  /// Looks at the front process and the shield themselves, whose end shows otherwise only once they
  /// got a CPU to end: when one was killed, that is reported before this returns. Returns the
  /// signals that were sent to the front process, and that it will read. Call it when the
  /// command has ended: what was sent before that shows here. Blocks for at most two milliseconds
  /// each.
  SignalMask look_at_guards();

  /// Whether this process gets the signal from the same sender, too: until now and not long ago, or
  /// by `until`; true as soon as it does. Each signal is reported once. The front process and the
  /// holder process share no process group, so it was sent to processes one by one: by the manager
  /// of a control group to all that are in it, by `killall`, `fuser -k` or `start-stop-daemon
  /// --exec` to those that run this program.
  asio::awaitable<bool> gets_too(PassedSignal signal, Instant until);

  /// Forgets the signals that gets_too() would report.
  void forget_signals();

  /// For the service manager: NAME=value. One message is under way at a time, since a stopped front
  /// process reads none; meanwhile the newest value of each name is kept.
  void notify_service(const std::string& name, std::string value);

  void tell_waiting() const { channel_.send({Message::Kind::waiting, 0, {}}); }
  void tell_started() const { channel_.send({Message::Kind::started, 0, {}}); }
  void tell_ended() const { channel_.send({Message::Kind::ended, 0, {}}); }
  void tell_paused(int signal) const { channel_.send({Message::Kind::paused, signal, {}}); }

  /// Sends the final report: what to exit with, or the signal to die of (0: none), and the text for
  /// --status-fd or stdout. False when it cannot be sent.
  bool report(int exit_code, int signal, std::string text) {
    notifying_ = false;
    send_notification();
    if (signal != 0) return channel_.send({Message::Kind::died, signal, std::move(text)});
    return channel_.send({Message::Kind::exited, exit_code, std::move(text)});
  }

 private:
  void ask();
  void send_notification();
  void on_signal(const ReceivedSignal& signal);
  bool take_twin(const PassedSignal& signal);
  void on_front_gone();
  void on_shield_gone();
  asio::awaitable<void> listen_to_front();
  asio::awaitable<void> listen_to_shield();
  [[nodiscard]] bool answered() const noexcept { return answers_ == questions_; }

  asio::any_io_executor executor_;
  const Clock& clock_;
  const SignalGate& gate_;
  pid_t front_;
  Channel channel_;
  Readable channel_readable_;
  Shield shield_;
  std::shared_ptr<SignalPump> signals_;
  std::unique_ptr<Event> event_;  ///< notified at an answer and at the end
  Handlers handlers_;
  std::map<std::pair<int, pid_t>, Instant> got_;  ///< signals to this process by number and sender,
                                                  ///< and when they were last read
  std::set<Event*> twin_awaited_;                 ///< to be notified of them
  std::map<std::string, std::string> notification_;  ///< not sent yet
  bool notifying_ = false;                           ///< one is under way
  int questions_ = 0;
  int answers_ = 0;  ///< the number of the last question that was answered
  bool handed_over_ = false;
  bool given_up_ = false;
  bool gone_ = false;
};

}  // namespace redlock::child
