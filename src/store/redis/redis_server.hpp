#pragma once

#include <asio/any_io_executor.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "store/redis/connection.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/tls_context.hpp"
#include "store/scripted_server.hpp"
#include "support/clock.hpp"

namespace redlock::redis {

struct RedisServerOptions {
  std::shared_ptr<const TlsContext> tls;  ///< what an endpoint with TLS needs
  unsigned replicas = 0;                  ///< a grant or an extension counts only when so many replicas have it (WAIT)
  bool introduces_itself = false;         ///< ask each time it connects who it is and for how long it is up (ServerFacts)
  bool slots_move = false;                ///< it is part of a cluster
  std::function<void(const std::string& server)> needless_password{};  ///< told of a server without the general password it was given
};

class Sentinels;

/// One Redis or Valkey server, or whichever of several its sentinels call the master. Connects when it is first asked, and anew after a
/// connection broke, ran late, or led to what turned out to be a read-only replica; at each connect the sentinels are asked again.
class RedisServer final : public ScriptedServer {
 public:
  /// `endpoint` is of any kind but cluster. `clock` must outlive the server.
  RedisServer(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint, RedisServerOptions options = {});

  [[nodiscard]] const std::string& name() const override { return name_; }
  asio::awaitable<Result<LockList, Fault>> list(Instant deadline) override;
  asio::awaitable<Result<ServerReport, Fault>> examine(Instant deadline) override;
  asio::awaitable<std::vector<std::string>> missing_rights(Resource unused_key, Instant deadline) override;
  asio::awaitable<std::optional<Fault>> erase(Resource resource, Instant deadline) override;
  asio::awaitable<std::optional<Fault>> listen(Resource resource, std::string waiter, std::function<void(Call)> heard,
                                               Instant deadline) override;
  void stop_listening() override;

  /// Ends a subscription at the wrong server: who listens hears Call::deaf.
  void go_deaf();
  asio::awaitable<void> close(Instant deadline) override;

  /// What the server itself answers, errors too. `asking`: behind ASKING, as for a slot that it is importing.
  asio::awaitable<Result<Reply, Fault>> ask(ScriptCall call, bool asking, Instant deadline);
  asio::awaitable<Result<Reply, Fault>> ask(Command command, ReplyLimits limits, Instant deadline);

  [[nodiscard]] ServerFacts facts() const override { return facts_; }
  void post(ScriptCall call, NotUndone not_undone) override;
  void post_to_late(ScriptCall call, bool only_unanswered, NotUndone not_undone) override;

 protected:
  asio::awaitable<ScriptReply> call(ScriptCall call, Instant deadline) override;

 private:
  /// Something that may be at the server and was not taken back (see Leavings).
  struct Carried {
    bool answered = false;   ///< the server answered what brought it
    bool inherited = false;  ///< another connection brought it, which has ended
  };

  /// A connection and what was done on it.
  struct Link {
    std::shared_ptr<Connection> connection;
    bool waits = false;   ///< it may be blocked in a WAIT: what is sent behind is read only after that,
    Instant waits_until;  ///< and that is over by then
    std::map<std::string, Carried> left;
    std::shared_ptr<std::size_t> unread_undos = std::make_shared<std::size_t>(0);  ///< posted, and not answered yet

    /// Whether the server may have got that: what never opened carried only what it had inherited.
    [[nodiscard]] bool carried(const std::string& what) const;

    /// Takes over what an ended connection left; this one is to take it back.
    void inherit(Link& from);
  };

  asio::awaitable<Result<Reply, Fault>> ask_once(ScriptCall call, bool asking, Instant deadline);

  /// Runs the script by its digest. A server that does not know it is told the text first, by a command of its
  /// own: an attempt and what takes it back must stay small (decision 0075).
  asio::awaitable<Result<Reply, Fault>> run_script(std::shared_ptr<Link> link, const ScriptCall& call, bool asking, Instant deadline);

  /// Nothing when enough replicas have what was last written on this connection.
  asio::awaitable<std::optional<Fault>> missing_replicas(std::shared_ptr<Link> link, Instant deadline);

  /// The connection in use, which may have to open first; it inherits what broken ones carried.
  std::shared_ptr<Link> usable_link(Instant deadline);
  void retire_unusable();
  std::shared_ptr<Link> connect(Instant deadline);
  std::shared_ptr<Connection> open_connection(Instant deadline, const std::optional<Command>& greeting);
  void post_on(Link& link, const ScriptCall& call, const NotUndone& not_undone);

  asio::any_io_executor executor_;
  const Clock& clock_;
  Endpoint endpoint_;
  RedisServerOptions options_;
  std::string name_;
  std::shared_ptr<Sentinels> sentinels_;  ///< for an endpoint of that kind
  ServerFacts facts_;                     ///< of the server at the other end of the connection that gave the last reply
  std::shared_ptr<Link> current_;
  std::shared_ptr<Connection> ear_;         ///< subscribed, while somebody listens
  std::deque<std::shared_ptr<Link>> late_;  ///< they may still deliver; oldest first
};

}  // namespace redlock::redis
