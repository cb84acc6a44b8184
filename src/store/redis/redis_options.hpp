#pragma once

#include <functional>
#include <memory>
#include <string>

#include "store/redis/tls_source.hpp"

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

}  // namespace redlock::redis
