#pragma once

#include <asio/any_io_executor.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "store/redis/redis_server.hpp"
#include "store/redis/topology.hpp"

namespace redlock::redis {

/// A Redis Cluster as one vote: each question goes to the master of the key's slot, and follows
/// MOVED and ASK. The cluster is asked for that master first, so that no script is ever sent to a
/// wrong server that might keep it for later.
class ClusterServer final : public RedisVote {
 public:
  /// `endpoint` is of kind cluster. `clock` must outlive the server.
  ClusterServer(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
                RedisServerOptions options = {});

  [[nodiscard]] const std::string& name() const override { return name_; }
  /// From every master.
  asio::awaitable<Result<LockList, Fault>> list(Listed listed, Instant deadline) override;
  asio::awaitable<Result<std::vector<Master>, Fault>> masters(Instant deadline) override;
  asio::awaitable<Result<RedisServer*, Fault>> master_of(std::string key,
                                                         Instant deadline) override;
  asio::awaitable<std::optional<Fault>> subscribe(Resource resource, std::string waiter,
                                                  std::function<void(Notification)> notified,
                                                  Instant deadline) override;
  void unsubscribe() override;
  [[nodiscard]] bool was_reached() const override;
  asio::awaitable<void> close(Instant deadline) override;

  /// The master of the key's slot, as far as known; asks the cluster when it is unknown.
  asio::awaitable<Result<Address, Fault>> locate(std::string key, Instant deadline);

 protected:
  asio::awaitable<ScriptReply> call(ScriptCall call, Instant deadline) override;
  [[nodiscard]] ServerFacts facts() const override { return facts_; }
  void post(ScriptCall call, NotUndone not_undone) override;
  void post_to_late(ScriptCall call, bool only_unanswered, NotUndone not_undone) override;

 private:
  asio::awaitable<ScriptReply> follow(ScriptCall call, Instant deadline);

  /// Asks one server after the other for the slot ranges.
  asio::awaitable<std::optional<Fault>> discover_topology(Instant deadline);
  asio::awaitable<std::optional<Fault>> ask_for_slots(Address member, Instant deadline);

  /// All servers that may be asked, beginning with the one that answered last.
  [[nodiscard]] std::vector<Address> acquaintances() const;
  [[nodiscard]] std::vector<Address> known_masters() const;
  RedisServer& node(const Address& address);

  asio::any_io_executor executor_;
  const Clock& clock_;
  Endpoint endpoint_;
  RedisServerOptions options_;
  std::string name_;
  ServerFacts facts_;  ///< of the server that gave the last reply
  std::map<Address, std::unique_ptr<RedisServer>> nodes_;  ///< all that were ever asked
  std::vector<SlotRange> slots_;                           ///< the first that fits a slot is right
  std::vector<Address> acquaintances_;    ///< from the last answer with slot ranges
  std::optional<Address> subscribed_at_;  ///< the server with the current subscription
  std::size_t subscription_turn_ = 0;     ///< how often that server has changed
  std::set<std::string> undecided_;  ///< tokens of acquires and heals under way that are not undone
};

/// The vote for this endpoint, of any kind.
std::unique_ptr<RedisVote> make_server(asio::any_io_executor executor, const Clock& clock,
                                       const Endpoint& endpoint, const RedisServerOptions& options);

}  // namespace redlock::redis
