#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/line.hpp"
#include "engine/electorate.hpp"
#include "engine/interrupt.hpp"

namespace redlock {

/// A waiter's place in line at all servers, and its ear there (PROTOCOL Q2, Q4, Q5). Ends with the wait: then it leaves every line.
class Place {
 public:
  /// `host`: where we are, so that somebody elsewhere is told, too, when somebody here is notified.
  Place(Electorate& electorate, Resource resource, Ticket ticket, std::string_view host);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  /// Begins to listen, and goes on for as long as the place exists. Returns when every server has answered, or a quorum and the others are
  /// slow; after the server timeout at the latest, or with the interrupt. To be called before anything is put in line; again, it does nothing.
  asio::awaitable<void> listen(Interrupt& interrupt);

  /// Whether something may be in line at the servers.
  [[nodiscard]] bool in_queue() const { return in_line_; }

  /// What to put in line there.
  [[nodiscard]] LineEntry entry(std::size_t server) const;

  /// The lease was granted: nothing is left in line anywhere.
  void served() { in_line_ = false; }

  /// Leaves every line; the place is taken again by the next look.
  void leave();

  /// Nobody knows whether that server's connection still carries calls: listens anew.
  void doubt(std::size_t server);

  /// Whether a quorum of servers can call us. Otherwise we must look often.
  [[nodiscard]] bool hears() const;

  /// Why some of them cannot.
  [[nodiscard]] std::vector<ServerFault> deaf_to() const;

  /// Forgets the calls so far: whoever looks now follows them. Those that come while it looks count for the next wait.
  void begin_look();

  /// Returns when a quorum calls us; when some do and the others do not follow within `gathering`; when we stood by for long enough; at
  /// `when`; or with the interrupt. -> whether it was the call of some
  asio::awaitable<bool> wait(Instant when, Duration gathering, Interrupt& interrupt);

 private:
  struct Ears;  ///< shared with what listens

  static asio::awaitable<void> keep_listening(std::shared_ptr<Ears> ears, std::size_t server);
  void stop_listening();

  Electorate& electorate_;
  Resource resource_;
  Ticket ticket_;
  std::shared_ptr<Ears> ears_;
  bool in_line_ = false;
  bool listens_ = false;
};

}  // namespace redlock
