#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/vote.hpp"
#include "store/redis/connector.hpp"

namespace redlock::redis {

/// A waiter's subscription to its notifications, on a connection of its own. One at a time.
class Subscription {
 public:
  /// `connector` must outlive it.
  explicit Subscription(const Connector& connector) : connector_(connector) {}

  /// See LockServer::subscribe. Ends a previous subscription.
  asio::awaitable<std::optional<Fault>> start(std::string channel,
                                              std::function<void(Notification)> notified,
                                              Instant deadline);

  /// Ends the subscription; `notified` is not called again.
  void stop();

  /// Ends the subscription because it is at the wrong server. Calls `notified` with
  /// Notification::disconnected.
  void disconnect();

 private:
  const Connector& connector_;
  std::shared_ptr<Connection> connection_;  ///< during a subscription
};

}  // namespace redlock::redis
