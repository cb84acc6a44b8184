#pragma once

#include <asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/redis/connector.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/links.hpp"
#include "store/redis/step_time.hpp"
#include "store/redis/subscription.hpp"
#include "store/scripted_server.hpp"
#include "support/clock.hpp"

namespace redlock::redis {

class RedisServer;

/// One vote of Redis: a single server, or a cluster with several masters. Adds to the port what
/// `doctor` needs.
class RedisVote : public ScriptedServer {
 public:
  struct Master {
    /// Returns it; it must not outlive the vote. Keep none of many masters, as a cluster may have
    /// thousands: each that was asked has a connection.
    std::function<std::shared_ptr<RedisServer>()> server;
    std::string address;  ///< for messages; empty if the vote has only one server
  };

  /// One of its masters is enough.
  asio::awaitable<std::optional<bool>> persists_nothing(Instant deadline) final;

  /// All servers that may have keys.
  virtual asio::awaitable<Result<std::vector<Master>, Fault>> masters(Instant deadline) = 0;

  /// The server of this key; it must not outlive the vote.
  virtual asio::awaitable<Result<std::shared_ptr<RedisServer>, Fault>> master_of(
      std::string key, Instant deadline) = 0;
};

/// One Redis or Valkey server, or the one that its sentinels currently name as the master. Connects
/// when it is first asked, and again after a connection broke, missed a deadline, or led to a
/// read-only replica. Asks the sentinels again for each connection.
class RedisServer final : public RedisVote {
 public:
  /// `endpoint` is of any kind but cluster. `clock` must outlive the server.
  RedisServer(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
              RedisServerOptions options = {});

  [[nodiscard]] const std::string& name() const override { return name_; }
  asio::awaitable<Result<LockList, Fault>> list(ListRequest request) override;
  asio::awaitable<std::optional<Fault>> subscribe(Resource resource, std::string waiter,
                                                  std::function<void(Notification)> notified,
                                                  Instant deadline) override;
  void unsubscribe() override { subscription_.stop(); }

  /// Ends a subscription at the wrong server: the subscriber is notified of
  /// Notification::disconnected.
  void drop_subscription() { subscription_.disconnect(); }

  void on_disconnect(std::function<void()> notify) override {
    links_.on_disconnect(std::move(notify));
  }
  [[nodiscard]] bool was_reached() const override { return links_.was_reached(); }
  asio::awaitable<void> close(Instant deadline) override;

  /// Ends all connections at once. No question may follow.
  void abort();

  asio::awaitable<Result<std::vector<Master>, Fault>> masters(Instant deadline) override;
  asio::awaitable<Result<std::shared_ptr<RedisServer>, Fault>> master_of(std::string key,
                                                                         Instant deadline) override;

  /// The server's answer, possibly an error reply, and the connection on which it came or failed.
  /// Another connection may be in use by then.
  struct Answer {
    Result<Reply, Fault> reply;
    std::shared_ptr<const Link> link;
  };
  /// `asking`: send ASKING first, for a slot that the server is importing.
  asio::awaitable<Answer> answer_to(ScriptCall call, bool asking, StepTime time);
  asio::awaitable<Answer> answer_to(Command command, ReplyLimits limits, Instant deadline);
  asio::awaitable<Result<Reply, Fault>> ask(Command command, ReplyLimits limits, Instant deadline);

  /// The answers to TYPE for each of the keys, in one round trip.
  struct Types {
    std::vector<Reply> replies;
    std::shared_ptr<const Link> link;
  };
  asio::awaitable<Result<Types, Fault>> types_of(std::vector<std::string> keys, bool asking,
                                                 Instant deadline);

  /// Whether it was asked for something that may have to be undone there.
  [[nodiscard]] bool may_have_changed() const { return links_.carried_undoable(); }

  [[nodiscard]] ServerFacts facts() const override { return facts_; }
  void post(const ScriptCall& call, const NotUndone& not_undone) override {
    links_.post(call, not_undone);
  }
  void post_to_late(const ScriptCall& call, bool only_unanswered,
                    const NotUndone& not_undone) override {
    links_.post_to_late(call, only_unanswered, not_undone);
  }

 protected:
  asio::awaitable<ScriptReply> call(ScriptCall call, Instant deadline) override;

 private:
  /// A pointer to this server that does not keep it alive: it is owned elsewhere.
  std::shared_ptr<RedisServer> itself();

  /// Whether a question that got no answer on this connection may be repeated on another one: our
  /// password was refused and the user's file has another one by now; or a sentinel named a server
  /// that is not a master, and others name another server (PROTOCOL R13).
  asio::awaitable<bool> finds_better_connection(std::shared_ptr<const Link> link, Instant deadline);

  /// `call` must outlive the coroutine.
  asio::awaitable<Answer> ask_once(const ScriptCall& call, bool asking, StepTime time);
  asio::awaitable<Result<Reply, Fault>> ask_on(std::shared_ptr<Link> link, const ScriptCall& call,
                                               bool asking, StepTime time);

  /// What to do with an answer to the call that comes on this connection after its deadline.
  [[nodiscard]] Connection::Answered late_answer_to(const ScriptCall& call,
                                                    const std::shared_ptr<Link>& link) const;

  /// What follows from an error reply: the reply, or the fault if the call must not be repeated.
  Result<Reply, Fault> refused(Link& link, UndoableCall& undoable, Reply error);

  /// Notes the facts that the server reported when this connection opened.
  void note_facts(const Link& link);

  /// Runs the script by its digest. A server that does not know the scripts gets their text first,
  /// in a separate command: an attempt and its undo must stay small (docs/decisions/attempts.md).
  asio::awaitable<Result<Reply, Fault>> run_script(std::shared_ptr<Link> link,
                                                   const ScriptCall& call, bool asking,
                                                   StepTime time);

  /// Sends a command, possibly with ASKING before it, and returns its reply. `with_role`: the
  /// answer of a replica is a fault; `late`, which gets an answer after the deadline, must be null
  /// then.
  asio::awaitable<Result<Reply, Fault>> send(std::shared_ptr<Link> link, EncodedCommand command,
                                             bool asking, bool with_role, Instant deadline,
                                             Connection::Answered late = nullptr);

  /// The fault of a replica, by its replies to ROLE and INFO.
  std::optional<Fault> objection_to_role(const Reply& role, const Reply& info);

  /// Whether enough replicas confirm the last write of this connection before `deadline`. A refused
  /// WAIT is repeated; the script that wrote is not, because it would find nothing to release.
  asio::awaitable<bool> replicas_have_record(std::shared_ptr<Link> link, Instant deadline);

  /// nullopt if enough replicas have the last write of this connection.
  asio::awaitable<std::optional<Fault>> missing_replicas(std::shared_ptr<Link> link,
                                                         Instant deadline);

  const Clock& clock_;
  RedisServerOptions options_;
  std::string name_;
  Connector connector_;
  Links links_;
  Subscription subscription_;
  /// Of the server at the other end of the connection that gave the last reply.
  ServerFacts facts_;
  std::string first_run_id_;
};

}  // namespace redlock::redis
