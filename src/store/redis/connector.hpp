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

/// How to connect to a Redis server.
struct RedisServerOptions {
  std::shared_ptr<TlsSource> tls;  ///< for endpoints with TLS

  /// A grant or an extension counts only when this many replicas have it (WAIT).
  unsigned replicas = 0;

  /// Ask the server for its identity and uptime on each connection (ServerFacts).
  bool identifies_itself = false;

  bool slots_move = false;  ///< the server is part of a cluster

  Duration server_timeout{};  ///< for messages; zero: unknown

  /// Called with the name of a server that does not report whether it is a replica (PROTOCOL D4),
  /// when that matters.
  std::function<void(const std::string& server)> unknown_role{};

  /// Called with the name of a server that has no password although the general one was sent.
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

  /// The password to log in with, read from the user's file if there is one.
  [[nodiscard]] std::optional<std::string> password() const;

  [[nodiscard]] bool password_may_change() const { return endpoint_.password_file != nullptr; }

  /// Begins to open a connection and to log in. `greeting`: see Connection.
  [[nodiscard]] std::shared_ptr<Connection> open(Instant deadline,
                                                 const std::optional<Command>& greeting,
                                                 const std::optional<std::string>& password) const;

  /// For use after the server turned out not to be a master: whether a sentinel names another one.
  /// If so, the next open() connects to that one.
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
