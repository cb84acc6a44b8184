#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/vote.hpp"
#include "store/redis/command.hpp"
#include "store/redis/reply_reader.hpp"
#include "store/redis/transport.hpp"
#include "support/clock.hpp"
#include "support/result.hpp"

namespace redlock::redis {

/// One connection to one server; it never reconnects. Commands are sent in the given order. The
/// login commands come first, in one write with the first command. Replies are matched by order.
///
/// If the server must be a master, ROLE is sent after the login. If it is not a master, every
/// question is answered with that fault, and the connection counts as late.
///
/// A greeting is a question that is sent after the login and before everything else. Its answer is
/// kept, even an error.
///
/// A connection on which an answer missed its deadline is `late`: it still delivers the commands
/// that it was given, and those that are posted later, but takes no new question, whose reply would
/// be that of the old one. A connection that breaks answers all open questions with a Fault.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// What the server answered to the greeting, and when.
  struct Greeting {
    Reply reply;
    Instant at;
  };

  Connection(asio::any_io_executor executor, const Clock& clock,
             std::unique_ptr<Transport> transport, const std::vector<Command>& login,
             const std::optional<Command>& greeting = std::nullopt, bool demands_master = false);

  /// A login that fails because the server has no password does not count as failed: `notify` runs
  /// instead. Call it before start().
  void allow_needless_password(std::function<void()> notify) {
    needless_password_ = std::move(notify);
  }

  /// The server timeout to name in messages about a missed deadline; without it, they name the time
  /// that was given. Call it before start().
  void set_server_timeout(Duration timeout) { server_timeout_ = timeout; }

  /// Begins to connect. Call it once.
  void start(Instant deadline);

  /// Receives the result of a command that no coroutine waits for: the reply, or the fault that
  /// ended the connection.
  using Answered = std::function<void(const Result<Reply, Fault>&)>;

  /// Sends a command and waits for its reply until `deadline`. If the connection opens until then,
  /// the reply has as long from there as the connection had. Error replies are returned as replies;
  /// if the login was refused, every answer is that fault. `late` runs if the reply comes after the
  /// deadline; null: that reply is dropped.
  asio::awaitable<Result<Reply, Fault>> request(EncodedCommand command, ReplyLimits limits,
                                                Instant deadline, Answered late = nullptr);

  struct Question {
    EncodedCommand command;
    ReplyLimits limits{};
    bool may_fail = false;  ///< its fault, such as a closed connection, counts as an error reply
  };
  /// The same for several commands, at least one, in one write. Returns all replies in their order,
  /// or the first fault. `late` gets the last reply.
  asio::awaitable<Result<std::vector<Reply>, Fault>> request_all(std::vector<Question> questions,
                                                                 Instant deadline,
                                                                 Answered late = nullptr);

  /// Sends a command after all others. `answered` may be null. It runs once, unless the connection
  /// is destroyed before the answer.
  void post(EncodedCommand command, Answered answered = nullptr);

  /// `notified` gets the messages of a subscription, which answer no question, and a null pointer
  /// when the connection ends. Without it, such a message is a protocol error and ends the
  /// connection.
  void on_message(std::function<void(const Reply*)> notified) { on_message_ = std::move(notified); }

  /// `notify` runs when the server, or the network, ends this connection while it is open and in
  /// use.
  void on_disconnect(std::function<void()> notify) { disconnected_ = std::move(notify); }

  /// Whether it takes questions: it is not broken, late or closed.
  [[nodiscard]] bool usable() const noexcept { return !broken_ && !late_; }

  /// Makes the connection count as late, so that no question follows.
  void retire() noexcept { late_ = true; }

  /// Whether it ended after it had been open. Then the server may have executed its commands, or
  /// may still do so.
  [[nodiscard]] bool broke_off() const noexcept { return broken_ && was_open(); }

  /// Whether the server refused our login.
  [[nodiscard]] bool was_denied() const noexcept {
    return login_fault_ && login_fault_->kind == FaultKind::denied;
  }

  /// Whether the server refused our login but executed a command all the same, for the default
  /// user.
  [[nodiscard]] bool acted_without_login() const noexcept { return acted_without_login_; }

  [[nodiscard]] bool was_open() const noexcept { return opened_at_.has_value(); }

  [[nodiscard]] bool broken() const noexcept { return broken_.has_value(); }

  /// See Transport::stays_on_this_host.
  [[nodiscard]] bool stays_on_this_host() const { return transport_->stays_on_this_host(); }

  /// Whether the server had to be a master, but reported that it is not one.
  [[nodiscard]] bool found_no_master() const noexcept { return found_no_master_; }

  /// The answer to the greeting; nullopt until it arrives. It arrives before any requested answer.
  [[nodiscard]] const std::optional<Greeting>& greeting() const noexcept { return greeting_; }

  /// Whether the server refused the greeting for the moment (BUSY and the like).
  [[nodiscard]] bool greeting_was_refused() const;

  /// Repeats the greeting after everything else, and keeps the answer. Returns a fault if there is
  /// no answer.
  asio::awaitable<std::optional<Fault>> greet_again(Instant deadline);

  /// See LockServer::close. `answered`: shut down the sending half only after all answers. If a
  /// server blocks a client, as with WAIT, it drops unread commands when that client closes.
  asio::awaitable<void> close(Instant deadline, bool answered = false);

  /// Ends at once, whatever is under way.
  void abort();

  /// Whether this side closed it.
  [[nodiscard]] bool aborted() const noexcept { return aborted_; }

 private:
  struct Open;  ///< a command whose reply is awaited

  asio::awaitable<void> serve(Instant deadline);
  asio::awaitable<void> write_rest();
  void enqueue(EncodedCommand command, std::shared_ptr<Open> open);
  void flush();

  /// Passes the reply to the command that it answers.
  void deliver(Reply reply);
  void read_error(Reply& reply);
  /// `next`: the reply after that to AUTH.
  void judge_needless_password(const Reply& next);
  void take_login(Open& open, Reply reply);
  void take_role(Open& open, Reply reply);
  void take_greeting(Open& open, Reply reply);
  void take_answer(Open& open, Reply reply);

  /// The fault, with the server's name where it does not go without saying.
  [[nodiscard]] Fault of_server(Fault fault) const;

  /// The fault if `awaited` did not come within this time.
  [[nodiscard]] Fault missed_deadline(const std::string& awaited, Duration time_given) const;
  static void finish(Open& open, Result<Reply, Fault> answer);
  void fail(Fault fault);

  asio::any_io_executor executor_;
  const Clock& clock_;
  std::unique_ptr<Transport> transport_;
  ReplyReader reader_;
  std::deque<std::shared_ptr<Open>> open_;  ///< in the order of their replies
  std::string unsent_;
  std::string being_written_;
  std::optional<Fault> login_fault_;
  std::function<void()> needless_password_;
  bool seems_needless_ = false;  ///< by the answer to AUTH; the next answer confirms it or not
  std::optional<Fault> broken_;
  std::function<void(const Reply*)> on_message_;
  std::function<void()> disconnected_;
  std::string password_;  ///< masked in the errors that the server sends; empty: none was sent
  std::unique_ptr<Event> progress_;  ///< notified when it opens, when something is written, and at
                                     ///< the end; for close()
  bool found_no_master_ = false;
  std::optional<Command> greeting_command_;
  std::optional<Greeting> greeting_;
  std::optional<Instant> opened_at_;
  Duration server_timeout_{};  ///< zero: unknown
  bool answered_ = false;      ///< the server answered something
  bool late_ = false;
  bool aborted_ = false;
  bool acted_without_login_ = false;
  bool asked_ = false;  ///< something was requested
  bool carries_undo_ =
      false;  ///< something was posted first: it undoes what another connection carried
};

}  // namespace redlock::redis
