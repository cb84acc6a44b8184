#pragma once

#include <asio/any_io_executor.hpp>
#include <functional>
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
  asio::awaitable<Result<std::shared_ptr<RedisServer>, Fault>> master_of(std::string key,
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
  void post(const ScriptCall& call, const NotUndone& not_undone) override;
  void post_to_late(const ScriptCall& call, bool only_unanswered,
                    const NotUndone& not_undone) override;

 private:
  /// A call that may leave something on a server.
  struct Attempt {
    UndoTarget target;
    bool undone = false;
  };

  asio::awaitable<ScriptReply> follow(ScriptCall call, std::shared_ptr<const Attempt> attempt,
                                      Instant deadline);

  /// Notes that the attempts which left this are undone: they must not be sent any more.
  void mark_undone(const std::string& token_or_waiter);

  /// Asks one server after the other for the slot ranges.
  asio::awaitable<std::optional<Fault>> discover_topology(Instant deadline);
  asio::awaitable<std::optional<Fault>> ask_for_slots(Address member, Instant deadline);

  /// All servers that may be asked, beginning with the one that answered last.
  [[nodiscard]] std::vector<Address> acquaintances() const;
  [[nodiscard]] std::vector<Address> known_masters() const;

  /// The server at this address, which is connected to when it is first asked.
  std::shared_ptr<RedisServer> node(const Address& address);

  /// Ends the connections to servers that neither the settings nor the cluster name any more, but
  /// for those that were asked last: they may have something that must be undone there.
  void forget_strangers();

  struct Node {
    std::shared_ptr<RedisServer> server;
    std::uint64_t last_asked = 0;  ///< the number of that question
  };

  asio::any_io_executor executor_;
  const Clock& clock_;
  Endpoint endpoint_;
  RedisServerOptions options_;
  std::string name_;
  ServerFacts facts_;  ///< of the server that gave the last reply
  std::map<Address, Node> nodes_;
  std::uint64_t questions_ = 0;                  ///< to all nodes
  std::vector<SlotRange> slots_;                 ///< the first that fits a slot is right
  std::vector<Address> acquaintances_;           ///< from the last answer with slot ranges
  std::optional<Address> subscribed_at_;         ///< the server with the current subscription
  std::size_t subscription_turn_ = 0;            ///< how often that server has changed
  std::set<std::shared_ptr<Attempt>> attempts_;  ///< under way
};

/// The vote for this endpoint, of any kind.
std::unique_ptr<RedisVote> make_server(asio::any_io_executor executor, const Clock& clock,
                                       const Endpoint& endpoint, const RedisServerOptions& options);

}  // namespace redlock::redis
