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

/// A sent request whose effect may be on the server and has not been undone (see UndoTarget).
struct Sent {
  bool answered = false;   ///< the server answered the request
  bool inherited = false;  ///< the request was sent on another connection, which has ended
};

/// A connection, and the requests that were sent on it.
struct Link {
  std::optional<std::string> password;  ///< with which it logged in
  std::shared_ptr<Connection> connection;

  /// The server may be blocked in a WAIT until `waits_until`, and reads later commands only after
  /// that.
  bool waits = false;
  Instant waits_until;

  std::map<std::string, Sent> maybe_applied;  ///< by token or waiter

  /// It has carried a request that is undone, or was, on this connection.
  bool carried_undoable = false;

  /// The number of undos that were posted and are not answered yet.
  std::shared_ptr<std::size_t> unread_undos = std::make_shared<std::size_t>(0);

  /// Whether the server may have received the request with this token, or this id of a waiter or a
  /// user. A connection that never opened carried only what it had inherited.
  [[nodiscard]] bool may_have_received(const std::string& what) const;

  /// Whether the connection ended before it opened, so that no request on it has reached the
  /// server.
  [[nodiscard]] bool failed_to_open() const;

  /// See Transport::stays_on_this_host.
  [[nodiscard]] bool stays_on_this_host() const { return connection->stays_on_this_host(); }

  /// Takes over the requests of an ended connection that may have reached the server. This
  /// connection has to undo them.
  void inherit(Link& from);
};

/// What a call may leave on a server, as a link remembers it, until it is undone there: the lease
/// of an acquire or a heal, the entry of a user or a waiter. `link` must outlive it.
class UndoableCall {
 public:
  UndoableCall(Link& link, const ScriptCall& call) : link_(link), target_(undo_target_of(call)) {}

  /// Whether the call may leave a lease.
  [[nodiscard]] bool may_leave_lease() const { return !target_.token.empty(); }

  /// Whether an undo, or a leave, was sent since the call was noted as sent. False if there was
  /// nothing to undo.
  [[nodiscard]] bool lease_is_undone() const { return is_missing(target_.token); }
  [[nodiscard]] bool waiter_has_left() const { return is_missing(target_.waiter); }

  void note_sent();
  void note_answered() { link_.maybe_applied[target_.token] = Sent{/*answered=*/true}; }

  /// Notes that the server has no lease of this call.
  void note_no_lease() { link_.maybe_applied.erase(target_.token); }

 private:
  [[nodiscard]] bool is_missing(const std::string& what) const {
    return !what.empty() && !link_.maybe_applied.contains(what);
  }

  Link& link_;
  UndoTarget target_;
};

/// The connections to one server: the one in use, and late ones that may still deliver requests.
/// Remembers what each carried, so that all of it can be undone.
class Links {
 public:
  /// `connector` must outlive it.
  explicit Links(const Connector& connector) : connector_(connector) {}

  /// The connection in use, which may still be opening. It inherits what broken connections
  /// carried. A connection on which the server refused a password from the user's file is
  /// abandoned: the file or the server may have another password by now.
  std::shared_ptr<Link> usable_link(Instant deadline);

  /// Abandons this connection if the server refused its password and the user's file has another
  /// one by now. Returns whether it did so and the question may be repeated.
  bool retire_outdated(const Link& link) const;
  [[nodiscard]] bool is_connected() const { return current_ && current_->connection->usable(); }

  /// Whether some connection has carried a request that may have to be undone, or its undo.
  [[nodiscard]] bool carried_undoable() const;

  /// Whether an earlier connection was open, too.
  [[nodiscard]] bool reconnected() const noexcept { return reconnected_; }

  /// Whether some connection still has to undo the request with this token or waiter's id; true for
  /// an empty text.
  [[nodiscard]] bool has_to_undo(const std::string& what) const;

  /// See ScriptedServer.
  void post(const ScriptCall& call, const NotUndone& not_undone);
  void post_to_late(const ScriptCall& call, bool only_unanswered, const NotUndone& not_undone);

  /// See LockServer.
  void on_disconnect(std::function<void()> notify) { disconnected_ = std::move(notify); }
  [[nodiscard]] bool was_reached() const;
  asio::awaitable<void> close(Instant deadline);

  /// Ends all connections at once; unsent requests are lost.
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
  bool reached_ = false;  ///< a connection that has been dropped since was open
};

}  // namespace redlock::redis
