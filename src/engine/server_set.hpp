#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

/// 64 random bits for each call: random_bits(), or a test's seeded generator.
using RandomBits = std::function<std::uint64_t()>;

/// A lease, or the remains of a failed attempt, that a server may still have although we want it
/// gone.
struct Leftover {
  std::size_t server;
  Resource resource;
  Token token;
  Instant until;  ///< it has expired there by then

  /// No other client may acquire the lock sooner; see ReleaseRequest::expire_in.
  Instant expire_at{};

  bool unread = false;  ///< the server may read the request for it later than a release on another
                        ///< connection
  std::optional<RunRecord> run{};  ///< to be remembered with the release
};

/// How long close() waits for servers that have not answered.
enum class CloseMode {
  immediate,  ///< not at all: the kernel has what was sent
  linger,  ///< a moment: they may be slower than the quorum, and each grant of theirs is one more
           ///< vote for the lease
  drain    ///< for the server timeout: undos must reach the servers
};

/// The configured servers, and what every round needs: the executor, the clock, randomness and the
/// server timeout. Must outlive all rounds, including what they left running in the background.
class ServerSet {
 public:
  /// `clock` must outlive the server_set. `restart_guard`: see restart_guard().
  ServerSet(asio::any_io_executor executor, const Clock& clock, RandomBits random,
            std::vector<std::unique_ptr<LockServer>> servers, Duration server_timeout,
            Duration restart_guard = Duration::zero());

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  [[nodiscard]] LockServer& server(std::size_t index) const { return *servers_[index]; }
  [[nodiscard]] const asio::any_io_executor& executor() const noexcept { return executor_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] std::uint64_t random() const { return random_(); }
  [[nodiscard]] Duration server_timeout() const noexcept { return server_timeout_; }

  /// How long after its start a server's vote for an acquire does not count (PROTOCOL R7); zero:
  /// there are too few servers for a guard.
  [[nodiscard]] Duration restart_guard() const noexcept { return restart_guard_; }

  /// Names for fingerprints and messages, in configured order.
  [[nodiscard]] std::vector<std::string> names() const;

  /// A question to this server begins.
  void note_question(std::size_t server) { answered_[server] = false; }

  /// It ended with a fault, or with a vote (none).
  void note_answer(std::size_t server, std::optional<Fault> fault);

  /// Whether a server answered its last question. While a question is under way, it has not. A
  /// server that was never asked anything counts as one that answers.
  [[nodiscard]] bool answered(std::size_t server) const { return answered_[server]; }

  /// Whether it has answered anything at all. A server that has not holds a lease of ours only if
  /// it has read the acquire and is still about to answer it.
  [[nodiscard]] bool ever_answered(std::size_t server) const { return ever_answered_[server]; }

  /// An event that is notified whenever a server ends its connection.
  [[nodiscard]] std::shared_ptr<Event> disconnection_event();

  /// Undoes an attempt at one server (see LockServer::undo), repeatedly if need be.
  void undo(std::size_t server, const Resource& resource, const Token& token, Ttl ttl,
            std::optional<Requeue> requeue = std::nullopt);

  /// Releases it in the background, with back-off, until the server confirms it or `until` has
  /// passed (R3). Leases of one lock go one after the other, so a silent server has one such
  /// question at a time, however many attempts failed.
  void clear_away(Leftover leftover);

  /// The leases of these that are not confirmed as released yet.
  [[nodiscard]] std::vector<Leftover> leftovers() const;

  /// Whether this lease is still to be released at this server.
  [[nodiscard]] bool has_leftover(std::size_t server, const Resource& resource,
                                  const Token& token) const;

  /// Waits until there are none.
  asio::awaitable<void> all_cleared();

  /// Whether a server gave a vote to its last question. While a question is under way, it has not.
  [[nodiscard]] bool votes(std::size_t server) const {
    return answered_[server] && !faults_[server];
  }

  /// The servers that gave no vote to their last question that has ended.
  [[nodiscard]] std::vector<ServerFault> faults() const;

  /// `told` runs at most once, with a server whose vote came after the decision, and showed that it
  /// is the same server as another one given: too late to refuse the set.
  void on_late_duplicate(std::function<void(const std::string& server)> told) {
    late_duplicate_ = std::move(told);
  }
  void report_late_duplicate(std::size_t server) {
    if (const auto told = std::exchange(late_duplicate_, nullptr)) told(servers_[server]->name());
  }

  /// Closes all connections. Leftovers are not released any more. Servers that answered last time
  /// are waited for until they have read everything, at most for the server timeout; the others as
  /// `close_mode` says.
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
  std::unique_ptr<Event> answer_;  ///< notified at each answer; for close()
  Leftovers leftovers_;
  std::unique_ptr<Event> cleared_;  ///< notified when a leftover is gone
  bool closing_ = false;
  std::function<void(const std::string&)> late_duplicate_;
  std::vector<std::weak_ptr<Event>> disconnection_events_;
  std::vector<std::optional<Fault>> faults_;
  Duration server_timeout_;
  Duration restart_guard_;
};

/// A new token, from the server_set's randomness.
Token draw_token(const ServerSet& server_set);

}  // namespace redlock
