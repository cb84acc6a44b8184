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

#include "core/lease.hpp"
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

/// A lease, or the remains of a failed attempt, that a server may still have and that is to be
/// released.
struct Leftover {
  std::size_t server;
  ReleaseRequest release;  ///< the release to repeat there
  Instant until;           ///< it has expired there by then
  bool unread = false;  ///< the server may read a release on another connection before it reads the
                        ///< request that left this
};

/// The release of all leases of a run that succeeded, before a quorum has confirmed that it held
/// them until then (PROTOCOL L4).
struct UnconfirmedRelease {
  std::vector<Lease> leases;  ///< with their deadlines as of now
  ReleaseTerms terms;
  Instant as_of;  ///< when `terms.expire_in` was right
};

/// How long close() waits for servers that have not answered.
enum class CloseMode {
  immediate,  ///< not at all: the kernel delivers what was sent
  linger,  ///< briefly: they may be slower than the quorum, and each further grant strengthens the
           ///< lease
  drain    ///< for the server timeout, as undos must reach the servers
};

/// The configured servers, with the executor, the clock, the random source and the server timeout
/// that every round needs. Must outlive all rounds and the work that they left in the background.
class ServerSet {
 public:
  /// `clock` must outlive the ServerSet. `restart_guard`: see restart_guard().
  ServerSet(asio::any_io_executor executor, const Clock& clock, RandomBits random,
            std::vector<std::unique_ptr<LockServer>> servers, Duration server_timeout,
            Duration restart_guard = Duration::zero());

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  [[nodiscard]] LockServer& server(std::size_t index) const { return *servers_[index]; }
  [[nodiscard]] const asio::any_io_executor& executor() const noexcept { return executor_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] std::uint64_t random() const { return random_(); }
  [[nodiscard]] Duration server_timeout() const noexcept { return server_timeout_; }

  /// For how long after its start a server's grant does not count (PROTOCOL R7); zero if there is
  /// no guard, or too few servers for one.
  [[nodiscard]] Duration restart_guard() const noexcept { return restart_guard_; }

  /// Names for fingerprints and messages, in configured order.
  [[nodiscard]] std::vector<std::string> names() const;

  /// Notes that a question to this server begins.
  void note_question(std::size_t server) { answered_[server] = false; }

  /// Notes that the question ended with a fault, or with a vote (nullopt).
  void note_answer(std::size_t server, std::optional<Fault> fault);

  /// Whether a server answered its last question; false while the question is under way. A server
  /// that was never asked counts as one that answers.
  [[nodiscard]] bool answered(std::size_t server) const { return answered_[server]; }

  /// Whether a server has ever answered a question. One that has not can only have a lease of ours
  /// if it has read the acquire and is about to answer it.
  [[nodiscard]] bool ever_answered(std::size_t server) const { return ever_answered_[server]; }

  /// Makes an event that is notified whenever a server ends its connection.
  [[nodiscard]] std::shared_ptr<Event> disconnection_event();

  /// Undoes an attempt on one server (see LockServer::undo), repeatedly if need be. `stray`: only
  /// its grant of these slots, as the attempt succeeded with others; a repetition leaves a lease
  /// that has been healed there meanwhile.
  void undo(std::size_t server, const Resource& resource, const Token& token, Ttl ttl,
            std::optional<Requeue> requeue = std::nullopt, Hold stray = {});

  /// Releases a leftover in the background, with back-off, until the server confirms it or
  /// Leftover::until has passed (R3). Leftovers of the same lock and server are released one after
  /// the other, so a silent server gets one such question at a time, however many attempts failed.
  void clear_away(Leftover leftover);

  /// The leftovers that are not confirmed as released yet.
  [[nodiscard]] std::vector<Leftover> leftovers() const;

  /// Leaves a release to be completed after the end of this process, as with leftovers.
  void leave(UnconfirmedRelease release) { unconfirmed_ = std::move(release); }
  /// The release that was left, which is then no longer there.
  [[nodiscard]] std::optional<UnconfirmedRelease> take_unconfirmed() {
    return std::exchange(unconfirmed_, std::nullopt);
  }

  /// Whether this lease is still to be released at this server.
  [[nodiscard]] bool has_leftover(std::size_t server, const Resource& resource,
                                  const Token& token) const;

  /// Waits until there are no leftovers.
  asio::awaitable<void> all_cleared();

  /// Whether a server's answer to its last question was a vote; false while the question is under
  /// way.
  [[nodiscard]] bool votes(std::size_t server) const {
    return answered_[server] && !faults_[server];
  }

  /// The servers whose last completed question ended with a fault.
  [[nodiscard]] std::vector<ServerFault> faults() const;

  /// `report` runs at most once, with a server whose vote came after the decision and showed that
  /// another configured server is the same one: too late to refuse the set.
  void on_late_duplicate(std::function<void(const std::string& server)> report) {
    late_duplicate_ = std::move(report);
  }
  void report_late_duplicate(std::size_t server) {
    if (const auto report = std::exchange(late_duplicate_, nullptr))
      report(servers_[server]->name());
  }

  /// Closes all connections, and stops releasing leftovers. Waits, within the server timeout, until
  /// the servers that answered their last question have read everything; for the others it waits
  /// according to `close_mode`.
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
  std::optional<UnconfirmedRelease> unconfirmed_;
  bool closing_ = false;
  std::function<void(const std::string&)> late_duplicate_;
  std::vector<std::weak_ptr<Event>> disconnection_events_;
  std::vector<std::optional<Fault>> faults_;
  Duration server_timeout_;
  Duration restart_guard_;
};

}  // namespace redlock
