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

/// One connection to one server, from connect to end; never reconnects. Commands are sent in the
/// order in which they are given, the login commands first and together with the first command in
/// one write. Replies are matched by that order.
/// | Where only a master will do, ROLE is sent after the login. At any other server every question
/// is answered with that fault, and the connection counts as late.
/// | A greeting is a question that is sent after the login and before everything else. Its answer
/// is kept, even an error.
/// | A connection on which an answer missed its deadline is `late`: it still delivers what it was
/// given, and what is posted later, but must not be asked anything new (its next reply would be the
/// old one). A connection that breaks answers all open questions with a Fault.
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

  /// A login that fails because the server has no password does not count as failed: `told` runs
  /// instead. Call it before start().
  void allow_needless_password(std::function<void()> told) { needless_password_ = std::move(told); }

  /// Begins to connect. Call it once.
  void start(Instant deadline);

  /// Sends a command and waits for its reply until `deadline`. Error replies are returned as
  /// replies; if the login was refused, every answer is that fault.
  asio::awaitable<Result<Reply, Fault>> request(EncodedCommand command, ReplyLimits limits,
                                                Instant deadline);

  /// The result of a posted command: the reply, or the fault that ended the connection before it.
  using Answered = std::function<void(const Result<Reply, Fault>&)>;

  /// Sends a command after all others. `answered`, if any, runs once; never when the connection is
  /// destroyed while the question is open.
  void post(EncodedCommand command, Answered answered = nullptr);

  /// Receives the messages of a subscription, which answer no question; and a null pointer when the
  /// connection ends. Without it such a message is garbage and ends the connection.
  void on_message(std::function<void(const Reply*)> notified) { on_message_ = std::move(notified); }

  /// `told` runs when the server, or the network, ends this connection while it is open and in use.
  void on_disconnect(std::function<void()> told) { disconnected_ = std::move(told); }

  /// Whether something may be asked here: not broken, not late, not closed.
  [[nodiscard]] bool usable() const noexcept { return !broken_ && !late_; }

  /// Ends its use: it counts as late from now on.
  void retire() noexcept { late_ = true; }

  /// Whether it ended after it was open: the server may have executed, or may still execute, what
  /// was asked here.
  [[nodiscard]] bool broke_off() const noexcept { return broken_ && connected_; }

  /// Whether the server refused our login.
  [[nodiscard]] bool was_denied() const noexcept {
    return login_fault_ && login_fault_->kind == FaultKind::denied;
  }

  /// Whether it executed something all the same, for the default user.
  [[nodiscard]] bool acted_for_stranger() const noexcept { return acted_for_stranger_; }

  [[nodiscard]] bool was_open() const noexcept { return connected_; }

  [[nodiscard]] bool broken() const noexcept { return broken_.has_value(); }

  /// See Transport::stays_on_this_host.
  [[nodiscard]] bool stays_on_this_host() const { return transport_->stays_on_this_host(); }

  /// Whether the server was demanded to be a master, and reported that it is none.
  [[nodiscard]] bool found_no_master() const noexcept { return found_no_master_; }

  /// Nothing until it arrives. It has arrived when any requested answer has.
  [[nodiscard]] const std::optional<Greeting>& greeting() const noexcept { return greeting_; }

  /// Whether the server refused the greeting for the moment (BUSY and the like).
  [[nodiscard]] bool greeting_was_refused() const;

  /// Asks the greeting again, after everything else, and keeps the answer. -> why there is none
  asio::awaitable<std::optional<Fault>> greet_again(Instant deadline);

  /// See LockServer::close. `answered`: shut down the sending half only after all answers. A server
  /// that keeps a client waiting drops what it has not read when that client closes.
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
  void deliver(Reply reply);

  /// The fault, with the server's name where it does not go without saying.
  [[nodiscard]] Fault of_server(Fault fault) const;
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
  bool seems_needless_ = false;  ///< by the answer to AUTH; the next one tells
  std::optional<Fault> broken_;
  std::function<void(const Reply*)> on_message_;
  std::function<void()> disconnected_;
  std::string password_;  ///< masked in the errors that the server sends; empty: none was sent
  std::unique_ptr<Event> progress_;  ///< notified when it opens, when something is written, and at
                                     ///< the end; for close()
  std::size_t login_replies_left_;
  bool asks_role_;  ///< the answer to ROLE is still to come
  bool found_no_master_ = false;
  std::optional<Command> greeting_command_;
  bool greets_;  ///< the answer to the greeting is still to come
  std::optional<Greeting> greeting_;
  bool connected_ = false;
  bool heard_ = false;  ///< the server answered something
  bool late_ = false;
  bool aborted_ = false;
  bool acted_for_stranger_ = false;
  bool asked_ = false;  ///< something was requested
  bool owed_ = false;   ///< something was posted first: it undoes what another connection carried
};

}  // namespace redlock::redis
