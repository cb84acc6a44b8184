#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "child/channel.hpp"
#include "child/signal_pump.hpp"
#include "support/clock.hpp"
#include "support/readable.hpp"

namespace redlock::child {

/// The holder's view of front: what front passes on, and whether it is still there. Single-threaded.
class FrontLink : public std::enable_shared_from_this<FrontLink> {
 public:
  struct Handlers {
    std::function<void(int)> signal;   ///< a signal for the wait, or for the command
    std::function<void()> child;       ///< a child ended (SIGCHLD)
    std::function<void()> front_gone;  ///< front was killed; once
  };

  /// `gate` and `clock` must outlive the executor's run().
  FrontLink(asio::any_io_executor executor, const Clock& clock, Channel channel, SignalGate& gate);

  /// Begins to listen.
  void start(Handlers handlers);

  /// Asks whether the command may start; true when front says so before `timeout` ends. A front that is stopped (^Z) says nothing.
  asio::awaitable<bool> may_start(Instant timeout);

  /// After may_start() was false: waits until front goes on (or is gone).
  asio::awaitable<void> until_continued();

  /// After report(): true when front says that the script has it, false when front is gone without a word, or give_up_hand_over() was
  /// called.
  asio::awaitable<bool> until_handed_over();
  void give_up_hand_over();

  [[nodiscard]] bool gone() const noexcept { return gone_; }

  /// Whether this process got the signal, too, and from somebody else than front: until now, and
  /// not long ago. Each is told once. Front and holder share no process group, so it was sent to
  /// processes one by one, as systemd does with all in a control group.
  bool got_ourselves(int signal);

  /// Forgets what got_ourselves() would tell.
  void forget_signals();

  void tell_waiting() const { channel_.send({Message::Kind::waiting, 0, {}}); }
  void tell_started() const { channel_.send({Message::Kind::started, 0, {}}); }
  void tell_ended() const { channel_.send({Message::Kind::ended, 0, {}}); }
  void tell_stopped(int signal) const { channel_.send({Message::Kind::stopped, signal, {}}); }

  /// The last word: what to exit with, or the signal to die of (0: none), and the text for
  /// --status-fd or stdout. False when it cannot be sent.
  bool report(int exit_code, int signal, std::string text) const {
    if (signal != 0) return channel_.send({Message::Kind::died, signal, std::move(text)});
    return channel_.send({Message::Kind::exited, exit_code, std::move(text)});
  }

 private:
  void ask();
  void on_signal(const ReceivedSignal& signal);
  asio::awaitable<void> listen_to_front();
  [[nodiscard]] bool answered() const noexcept { return answers_ == questions_; }

  asio::any_io_executor executor_;
  const Clock& clock_;
  pid_t front_;
  Channel channel_;
  Readable channel_readable_;
  std::shared_ptr<SignalPump> signals_;
  std::unique_ptr<Event> event_;  ///< rung at an answer and at the end
  Handlers handlers_;
  std::map<int, Instant> got_;  ///< signals to this process, and when they were last read
  int questions_ = 0;
  int answers_ = 0;  ///< the number of the last question that was answered
  bool handed_over_ = false;
  bool given_up_ = false;
  bool gone_ = false;
};

}  // namespace redlock::child
