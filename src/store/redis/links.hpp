#pragma once

#include <asio/awaitable.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "store/redis/connector.hpp"
#include "store/script_calls.hpp"

namespace redlock::redis {

/// Something that may be on the server and is not undone (see UndoTarget).
struct Carried {
  bool answered = false;   ///< the server answered what brought it
  bool inherited = false;  ///< another connection brought it, which has ended
};

/// A connection and what was asked on it.
struct Link {
  std::optional<std::string> password;  ///< with which it logged in
  std::shared_ptr<Connection> connection;

  /// The server may block it in a WAIT, which ends by `waits_until`: it reads later commands only
  /// after that.
  bool waits = false;
  Instant waits_until;

  std::map<std::string, Carried> left;  ///< by token or waiter

  /// The undos that were posted and are not answered yet.
  std::shared_ptr<std::size_t> unread_undos = std::make_shared<std::size_t>(0);

  /// Whether the server may have got that: what never opened carried only what it had inherited.
  [[nodiscard]] bool carried(const std::string& what) const;

  /// Whether it never opened, so that nothing of what was asked on it has reached the server.
  [[nodiscard]] bool failed_to_open() const;

  /// See Transport::stays_on_this_host.
  [[nodiscard]] bool stays_on_this_host() const { return connection->stays_on_this_host(); }

  /// Takes over what an ended connection left; this connection has to undo it.
  void inherit(Link& from);
};

/// The connections to one server: the one in use, and late ones that may still deliver what was
/// asked on them. Knows what each carried, so that all of it can be undone.
class Links {
 public:
  /// `connector` must outlive it.
  explicit Links(const Connector& connector) : connector_(connector) {}

  /// The connection in use, which may have to open first; it inherits what broken ones carried. One
  /// on which the server refused a password from the user's file is given up: the file, or the
  /// server, may have another by now.
  std::shared_ptr<Link> usable_link(Instant deadline);

  /// Gives up this connection if the server refused its password and the user's file has another by
  /// now. -> whether it did so, and what was asked there may be asked again
  bool retire_outdated(const Link& link) const;
  [[nodiscard]] bool is_connected() const { return current_ && current_->connection->usable(); }

  /// Whether an earlier one was open, too.
  [[nodiscard]] bool reconnected() const noexcept { return reconnected_; }

  /// Whether a connection still has it to undo; true for an empty one.
  [[nodiscard]] bool carries(const std::string& what) const;

  /// See ScriptedServer.
  void post(const ScriptCall& call, const NotUndone& not_undone);
  void post_to_late(const ScriptCall& call, bool only_unanswered, const NotUndone& not_undone);

  /// See LockServer.
  void on_disconnect(std::function<void()> told) { disconnected_ = std::move(told); }
  [[nodiscard]] bool was_reached() const;
  asio::awaitable<void> close(Instant deadline);

  /// Ends them at once; what was not sent is lost.
  void abort();

 private:
  void retire_unusable();
  std::shared_ptr<Link> connect(Instant deadline) const;
  void post_on(Link& link, const ScriptCall& call, const NotUndone& not_undone) const;

  const Connector& connector_;
  std::shared_ptr<Link> current_;
  std::deque<std::shared_ptr<Link>> late_;  ///< oldest first
  std::function<void()> disconnected_;
  bool reconnected_ = false;
  bool reached_ = false;  ///< over one that is neither of these any more
};

}  // namespace redlock::redis
