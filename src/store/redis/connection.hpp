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
#include "store/redis/reply_reader.hpp"
#include "store/redis/transport.hpp"
#include "support/clock.hpp"
#include "support/result.hpp"

namespace redlock::redis {

/// One connection to one server, from connect to end; never reconnects. Commands go out in the order in which they are given, the login
/// commands before all others and together with the first in one write; replies are matched by that order.
///
/// Where only a master will do, ROLE travels behind the login. At a server that is none nobody gets an answer but that fault, and the
/// connection counts as late.
///
/// A greeting is a question that travels behind the login and in front of everything else; its answer is kept, an error too.
///
/// A connection whose answer came too late for somebody is `late`: it still delivers what it was given, and what is posted behind, but is
/// not to be asked anything new (its next reply would be the old one). A connection that breaks answers everything that is open with a
/// Fault.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// What the server said to the greeting, and when it came.
  struct Greeting {
    Reply reply;
    Instant at;
  };

  Connection(asio::any_io_executor executor, const Clock& clock, std::unique_ptr<Transport> transport, const std::vector<Command>& login,
             const std::optional<Command>& greeting = std::nullopt, bool demands_master = false);

  /// A login that fails because the server has no password is none that failed: `told` is called instead. Before start().
  void allow_needless_password(std::function<void()> told) { needless_password_ = std::move(told); }

  /// Begins to connect. Notification once.
  void start(Instant deadline);

  /// Sends a command and waits for its reply until `deadline`. Error replies come back as replies; if the login was refused, every
  /// answer is that fault.
  asio::awaitable<Result<Reply, Fault>> request(Command command, ReplyLimits limits, Instant deadline);

  /// What becomes of a posted command: the reply, or the fault that ended the connection before it came.
  using Answered = std::function<void(const Result<Reply, Fault>&)>;

  /// Sends a command behind all others. `answered`, where there is one, is called once; never when the
  /// connection is destroyed with the question open.
  void post(const Command& command, Answered answered = nullptr);

  /// What comes without being an answer: the messages of a subscription. Called for each, and with a null pointer when the connection
  /// ends. Without it such a thing is garbage and ends the connection.
  void on_message(std::function<void(const Reply*)> notified) { heard_ = std::move(notified); }

  /// Whether something may be asked here: not broken, not late, not closed.
  [[nodiscard]] bool usable() const noexcept { return !broken_ && !late_; }

  /// Has done its service: counts as late from now on.
  void retire() noexcept { late_ = true; }

  /// Whether it ended after it had been open: the server may have acted, or may still act, on what was asked here.
  [[nodiscard]] bool broke_off() const noexcept { return broken_ && connected_; }

  [[nodiscard]] bool broken() const noexcept { return broken_.has_value(); }

  /// Nothing before it came. It is there when the answer to anything that was requested is.
  [[nodiscard]] const std::optional<Greeting>& greeting() const noexcept { return greeting_; }

  /// Whether the server refused the greeting for the moment (BUSY and the like).
  [[nodiscard]] bool greeting_was_refused() const;

  /// Puts the greeting again, behind everything else, and keeps the answer. -> why there is none
  asio::awaitable<std::optional<Fault>> greet_again(Instant deadline);

  /// See LockServer::close. `answered`: end the sending half only when everything is answered. A server drops what it has not read when a
  /// client that it lets wait ends.
  asio::awaitable<void> close(Instant deadline, bool answered = false);

  /// Ends at once, whatever is under way.
  void abort();

  /// Whether it was we who ended it.
  [[nodiscard]] bool aborted() const noexcept { return aborted_; }

 private:
  struct Open;  ///< a command whose reply is awaited

  asio::awaitable<void> serve(Instant deadline);
  asio::awaitable<void> write_rest();
  void enqueue(const Command& command, std::shared_ptr<Open> open);
  void flush();
  void deliver(Reply reply);
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
  std::optional<Fault> broken_;
  std::function<void(const Reply*)> heard_;
  std::unique_ptr<Event> progress_;  ///< rung when it opened, when something was written, and at the end; for close()
  std::size_t login_replies_left_;
  bool asks_role_;  ///< the answer to ROLE is still to come
  std::optional<Command> greeting_command_;
  bool greets_;  ///< the answer to the greeting is still to come
  std::optional<Greeting> greeting_;
  bool connected_ = false;
  bool late_ = false;
  bool aborted_ = false;
  bool asked_ = false;  ///< something was requested
  bool owed_ = false;   ///< something was posted first: it takes back what another connection carried
};

}  // namespace redlock::redis
