#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/queue.hpp"
#include "engine/server_set.hpp"
#include "support/clock.hpp"

namespace redlock {

/// A waiter's queue entries at all servers, and its subscriptions there (PROTOCOL Q2, Q4, Q5). Ends
/// with the wait: then it leaves every queue.
class QueueMember {
 public:
  /// `id`: one that new_id() made, for this waiter alone.
  QueueMember(ServerSet& server_set, Resource resource, Ticket ticket, std::string id);
  ~QueueMember();
  QueueMember(const QueueMember&) = delete;
  QueueMember& operator=(const QueueMember&) = delete;

  /// `host`: our own host, so that a waiter on another host is notified as well when one on ours
  /// is.
  static std::string new_id(ServerSet& server_set, std::string_view host);

  /// Subscribes, and stays subscribed while this object exists. Returns when every server has
  /// answered, or when a quorum has and the others are slow; after the server timeout at the
  /// latest, or with the interrupt. Call it before anything is queued; a second call does nothing.
  asio::awaitable<void> subscribe(Interrupt& interrupt);

  /// Whether servers may have an entry of ours.
  [[nodiscard]] bool in_queue() const { return queued_; }

  /// The entry to queue at that server.
  [[nodiscard]] QueueEntry entry(std::size_t server) const;

  /// The lease was granted: no server has an entry of ours any more.
  void served() { queued_ = false; }

  /// Leaves every queue. The next poll queues again in the same position.
  void leave();

  /// To be called with a server whose connection may not carry notifications any more: subscribes
  /// there again. It may outlive this object, and does nothing then.
  [[nodiscard]] std::function<void(std::size_t server)> resubscriber() const;

  /// Whether a quorum of servers can notify us. Otherwise we must poll often.
  [[nodiscard]] bool is_subscribed() const;

  /// Why some of them cannot.
  [[nodiscard]] std::vector<ServerFault> unsubscribed() const;

  /// Forgets the notifications so far: the attempt that begins now answers them. Those that arrive
  /// during the attempt count for the next wait.
  void begin_attempt();

  /// Returns when a quorum has notified us; when some servers have and the others do not follow
  /// within `gathering`; at the end of a standby; when no quorum can notify us for a while; at
  /// `when`; or with the interrupt. True when only some servers have notified us.
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
