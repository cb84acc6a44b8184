#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/queue.hpp"
#include "engine/server_set.hpp"
#include "support/clock.hpp"

namespace redlock {

/// A waiter's queue entries and subscriptions on all servers (PROTOCOL Q2, Q4, Q5). Its destructor
/// leaves every queue.
class QueueMember {
 public:
  /// `id`: from new_id(), for this waiter alone.
  QueueMember(ServerSet& server_set, Resource resource, Ticket ticket, std::string id);
  ~QueueMember();
  QueueMember(const QueueMember&) = delete;
  QueueMember& operator=(const QueueMember&) = delete;

  /// `host`: our own host. The id contains its fingerprint, so that a server that notifies a waiter
  /// on our host can also notify one on another host.
  static std::string new_id(ServerSet& server_set, std::string_view host);

  /// Subscribes, and stays subscribed while this object exists. Returns when every server has
  /// answered; when a quorum has answered and the others are slow; after the server timeout; or
  /// when the interrupt is raised. Call it before anything is queued. A second call has no effect.
  asio::awaitable<void> subscribe(Interrupt& interrupt);

  /// Whether any server may have an entry of ours.
  [[nodiscard]] bool in_queue() const { return queued_; }

  /// The entry to queue on that server.
  [[nodiscard]] QueueEntry entry(std::size_t server) const;

  /// The lease was granted: no server has an entry of ours now.
  void served() { queued_ = false; }

  /// Leaves every queue. The next poll queues again in the same position.
  void leave();

  /// A function to call with a server whose connection may have stopped carrying notifications. It
  /// subscribes there again. It may outlive this object; then it has no effect.
  [[nodiscard]] std::function<void(std::size_t server)> resubscriber() const;

  /// Whether a quorum of servers can notify us. If not, we must poll often.
  [[nodiscard]] bool is_subscribed() const;

  /// The servers that cannot notify us, and why.
  [[nodiscard]] std::vector<ServerFault> unsubscribed() const;

  /// Discards the notifications so far: the attempt that begins now responds to them. Notifications
  /// that arrive during the attempt count for the next wait().
  void begin_attempt();

  /// Returns when a quorum has notified us; when some servers have, and no quorum follows within
  /// `gathering`; at the end of a standby; when no quorum has been able to notify us for a while;
  /// at `when`; or when the interrupt is raised. True if only some servers have notified us.
  asio::awaitable<bool> wait(Instant when, Duration gathering, Interrupt& interrupt);

 private:
  struct Subscriptions;  ///< shared with the coroutines that subscribe

  static asio::awaitable<void> keep_subscribed(std::shared_ptr<Subscriptions> subscriptions,
                                               std::size_t server);
  void unsubscribe();

  ServerSet& server_set_;
  Resource resource_;
  Ticket ticket_;
  std::shared_ptr<Subscriptions> subscriptions_;
  bool queued_ = false;
  bool subscribed_ = false;
};

}  // namespace redlock
