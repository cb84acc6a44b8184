#pragma once

#include <asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "store/redis/connection.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/tls_source.hpp"
#include "support/clock.hpp"

namespace redlock::redis {

/// How to talk to a Redis server.
struct RedisServerOptions {
  std::shared_ptr<TlsSource> tls;  ///< what an endpoint with TLS needs

  /// A grant or an extension counts only when this many replicas have it (WAIT).
  unsigned replicas = 0;

  /// Ask for its identity and uptime each time it connects (ServerFacts).
  bool identifies_itself = false;

  bool slots_move = false;  ///< it is part of a cluster

  /// Receives the name of a server that has no password although the general one was offered.
  std::function<void(const std::string& server)> needless_password{};
};

class Sentinels;

/// Opens connections to one server, or to the server that its sentinels currently name as the
/// master.
class Connector {
 public:
  /// `endpoint` is of any kind but cluster. `clock` must outlive it.
  Connector(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
            RedisServerOptions options);

  /// The password to log in with, as the user's file has it now.
  [[nodiscard]] std::optional<std::string> password() const;

  [[nodiscard]] bool password_may_change() const { return endpoint_.password_file != nullptr; }

  /// A connection that has begun to open and to log in. `greeting`: see Connection.
  [[nodiscard]] std::shared_ptr<Connection> open(Instant deadline,
                                                 const std::optional<Command>& greeting,
                                                 const std::optional<std::string>& password) const;

  /// After it led to what is no master: whether a sentinel names another, to which open() leads
  /// next.
  [[nodiscard]] asio::awaitable<bool> finds_another_master(Instant deadline) const;

  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] const RedisServerOptions& options() const noexcept { return options_; }

 private:
  asio::any_io_executor executor_;
  const Clock& clock_;
  Endpoint endpoint_;
  RedisServerOptions options_;
  std::shared_ptr<Sentinels> sentinels_;  ///< for an endpoint of that kind
};

}  // namespace redlock::redis
