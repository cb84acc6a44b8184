#pragma once

#include <functional>
#include <memory>
#include <string>

#include "store/redis/tls_context.hpp"

namespace redlock::redis {

/// How to talk to a Redis server.
struct RedisServerOptions {
  std::shared_ptr<const TlsContext> tls;  ///< what an endpoint with TLS needs

  /// A grant or an extension counts only when so many replicas have it (WAIT).
  unsigned replicas = 0;

  /// Ask each time it connects who it is and for how long it is up (ServerFacts).
  bool introduces_itself = false;

  bool slots_move = false;  ///< it is part of a cluster

  /// Told of a server without the general password that it was given.
  std::function<void(const std::string& server)> needless_password{};
};

}  // namespace redlock::redis
