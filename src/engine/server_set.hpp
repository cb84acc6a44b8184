#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/vote.hpp"
#include "store/lock_server.hpp"
#include "support/clock.hpp"

namespace redlock {

/// A fault with the name of its server.
struct ServerFault {
  std::string server;
  Fault fault;
};

/// 64 random bits at each call: random_bits(), or a test's seeded generator.
using RandomBits = std::function<std::uint64_t()>;

/// A lease, or what a failed attempt left of one, that a server may still have although we want it gone.
struct Leftover {
  std::size_t server;
  Resource resource;
  Token token;
  Instant until;         ///< it has expired there by then
  Instant keep_until{};  ///< others may not have it sooner; see ReleaseRequest::keep
  bool unread = false;   ///< what asked for it may be read there later than a release on another connection
};

/// How long to wait at the end for servers that have not answered.
enum class CloseMode {
  immediate,    ///< not at all: the kernel has what was sent
  linger,  ///< a moment: they may be slower than the quorum, and a grant of theirs is one more vote for the lease
  drain  ///< for the server timeout: what was taken back must get there
};

/// The configured servers, and what every round needs: the executor, the clock, randomness and how long one server may take.
/// Must outlive all rounds, also what they left running in the background.
class ServerSet {
 public:
  /// `clock` must outlive the server_set. `restart_guard`: see restart_guard().
  ServerSet(asio::any_io_executor executor, const Clock& clock, RandomBits random, std::vector<std::unique_ptr<LockServer>> servers,
             Duration server_timeout, Duration restart_guard = Duration::zero());

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  [[nodiscard]] LockServer& server(std::size_t index) const { return *servers_[index]; }
  [[nodiscard]] const asio::any_io_executor& executor() const noexcept { return executor_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] std::uint64_t random() const { return random_(); }
  [[nodiscard]] Duration server_timeout() const noexcept { return server_timeout_; }

  /// How long after its start a server's vote for an acquire does not count (PROTOCOL R7); zero with too few servers for a guard.
  [[nodiscard]] Duration restart_guard() const noexcept { return restart_guard_; }

  /// Names for fingerprints and messages, in configured order.
  [[nodiscard]] std::vector<std::string> names() const;

  /// Remembers whether a server answered the last question that was put to it; while one is under way it has not. One that was never asked
  /// anything counts as one that answers.
  void set_answered(std::size_t server, bool answered) {
    answered_[server] = answered;
    if (!answered) return;
    ever_answered_[server] = true;
    answer_->notify();
  }
  [[nodiscard]] bool answered(std::size_t server) const { return answered_[server]; }

  /// Whether it has answered anything at all: one that has not holds no lease of ours.
  [[nodiscard]] bool ever_answered(std::size_t server) const { return ever_answered_[server]; }

  /// Undoes an attempt at one server (see LockServer::undo), again and again if need be.
  void undo(std::size_t server, const Resource& resource, const Token& token, Ttl ttl, std::optional<Requeue> requeue = std::nullopt);

  /// Releases it in the background, with back-off, until the server confirms it or `until` has come (R3). Leases of one lock go one after
  /// the other, so a silent server has one such question at a time, however many attempts failed.
  void clear_away(Leftover leftover);

  /// What of these is not confirmed yet.
  [[nodiscard]] std::vector<Leftover> leftovers() const;

  /// Whether this lease is still to be released at this server.
  [[nodiscard]] bool has_leftover(std::size_t server, const Resource& resource,
                                  const Token& token) const;

  /// Waits until there are none.
  asio::awaitable<void> all_cleared();

  /// Remembers how a server's last question ended, once it has: with a fault, or nothing: with a vote.
  void set_fault(std::size_t server, std::optional<Fault> fault) { faults_[server] = std::move(fault); }

  /// The servers that gave no vote to their last question that has ended.
  [[nodiscard]] std::vector<ServerFault> faults() const;

  /// Ends all connections; what is left over is not asked for again. Servers that answered last time are waited for, at most for the server
  /// timeout, until they have read everything; the others as `close_mode` says.
  asio::awaitable<void> close(CloseMode close_mode);

 private:
  asio::awaitable<void> release_again(std::size_t server, Resource resource);

  using Leftovers = std::vector<std::shared_ptr<Leftover>>;
  [[nodiscard]] Leftovers leftovers_of(std::size_t server, const Resource& resource) const;


  asio::any_io_executor executor_;
  const Clock& clock_;
  RandomBits random_;
  std::vector<std::unique_ptr<LockServer>> servers_;
  std::vector<bool> answered_;
  std::vector<bool> ever_answered_;
  std::unique_ptr<Event> answer_;  ///< rung at each; for close()
  Leftovers leftovers_;
  std::unique_ptr<Event> cleared_;  ///< rung when one is gone
  bool closing_ = false;
  std::vector<std::optional<Fault>> faults_;
  Duration server_timeout_;
  Duration restart_guard_;
};

/// A new token, of the server_set's randomness.
Token draw_token(const ServerSet& server_set);

}  // namespace redlock
