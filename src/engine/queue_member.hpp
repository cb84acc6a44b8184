#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/queue.hpp"
#include "engine/server_set.hpp"
#include "engine/interrupt.hpp"

namespace redlock {

/// A waiter's place in the queue at all servers, and its subscription there (PROTOCOL Q2, Q4, Q5). Ends with the wait: then it leaves every line.
class QueueMember {
 public:
  /// `host`: where we are, so that somebody elsewhere is told, too, when somebody here is notified.
  QueueMember(ServerSet& server_set, Resource resource, Ticket ticket, std::string_view host);
  ~QueueMember();
  QueueMember(const QueueMember&) = delete;
  QueueMember& operator=(const QueueMember&) = delete;

  /// Begins to listen, and goes on for as long as the place exists. Returns when every server has answered, or a quorum and the others are
  /// slow; after the server timeout at the latest, or with the interrupt. To be called before anything is put in the queue; again, it does nothing.
  asio::awaitable<void> subscribe(Interrupt& interrupt);

  /// Whether something may be in the queue at the servers.
  [[nodiscard]] bool in_queue() const { return queued_; }

  /// What to put in the queue there.
  [[nodiscard]] QueueEntry entry(std::size_t server) const;

  /// The lease was granted: nothing is left in the queue anywhere.
  void served() { queued_ = false; }

  /// Leaves every line; the place is taken again by the next look.
  void leave();

  /// Nobody knows whether that server's connection still carries calls: listens anew.
  void resubscribe(std::size_t server);

  /// Whether a quorum of servers can call us. Otherwise we must look often.
  [[nodiscard]] bool is_subscribed() const;

  /// Why some of them cannot.
  [[nodiscard]] std::vector<ServerFault> unsubscribed() const;

  /// Forgets the calls so far: whoever looks now follows them. Those that come while it looks count for the next wait.
  void begin_attempt();

  /// Returns when a quorum calls us; when some do and the others do not follow within `gathering`; when we stood by for long enough; at
  /// `when`; or with the interrupt. -> whether it was the call of some
  asio::awaitable<bool> wait(Instant when, Duration gathering, Interrupt& interrupt);

 private:
  struct Subscriptions;  ///< shared with what listens

  static asio::awaitable<void> keep_subscribed(std::shared_ptr<Subscriptions> subscriptions, std::size_t server);
  void unsubscribe();

  ServerSet& server_set_;
  Resource resource_;
  Ticket ticket_;
  std::shared_ptr<Subscriptions> subscriptions_;
  bool queued_ = false;
  bool subscribed_ = false;
};

}  // namespace redlock
