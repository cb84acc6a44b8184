#pragma once

#include <asio/any_io_executor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/redis/redis_server.hpp"
#include "store/redis/slot_masters.hpp"

namespace redlock::redis {

/// A Redis Cluster as one vote: each question goes to the master of the key's slot, and follows
/// MOVED and ASK. The cluster is asked for that master first, so that no script is sent to a wrong
/// server that might execute it later.
class ClusterServer final : public RedisVote {
 public:
  /// `endpoint` is of kind cluster. `clock` must outlive the server.
  ClusterServer(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
                RedisServerOptions options = {});

  [[nodiscard]] const std::string& name() const override { return name_; }
  /// Lists the locks of every master.
  asio::awaitable<Result<LockList, Fault>> list(ListRequest request) override;
  asio::awaitable<Result<std::vector<Master>, Fault>> masters(Instant deadline) override;
  asio::awaitable<Result<std::shared_ptr<RedisServer>, Fault>> master_of(std::string key,
                                                                         Instant deadline) override;
  asio::awaitable<std::optional<Fault>> subscribe(Resource resource, std::string waiter,
                                                  std::function<void(Notification)> notified,
                                                  Instant deadline) override;
  void unsubscribe() override;
  /// Called for a connection to any of the cluster's servers.
  void on_disconnect(std::function<void()> notify) override;
  [[nodiscard]] bool was_reached() const override;
  asio::awaitable<void> close(Instant deadline) override;

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

  /// Where a call goes next, and what has led it there.
  struct Route {
    std::uint16_t slot = 0;
    Address owner;        ///< the master of the slot
    Address place;        ///< the server to ask
    bool asking = false;  ///< the place is importing the slot
    int redirects = 0;
    SlotMasters::Refuted refuted;

    void lead_to_owner(Address address) {
      owner = std::move(address);
      place = owner;
      asking = false;
    }
  };

  /// Sends the call to the master of its slot, and on to where the answers lead it.
  asio::awaitable<ScriptReply> follow(ScriptCall call, std::shared_ptr<const Attempt> attempt,
                                      Instant deadline);

  /// Does what the call could not do at a server that lacks some of its keys, see rest_of().
  asio::awaitable<ScriptReply> finish(const ScriptCall& call, Reply reply,
                                      std::shared_ptr<const Attempt> attempt, Instant deadline);

  // These return the fault that ends a call, or change its route. The references must outlive the
  // coroutines.

  /// After this fault of a server that is not the slot's master.
  asio::awaitable<std::optional<Fault>> lead_to_other_master(Route& route, Fault fault,
                                                             Instant deadline);
  /// After an error reply on this link.
  std::optional<Fault> redirect(Route& route, std::string_view error_text, const Link& link);
  /// In a slot that moves: to the server that has the lock's key. Leaves out of the call the keys
  /// that are not there (PROTOCOL D1).
  asio::awaitable<std::optional<Fault>> lead_to_part(Route& route, ScriptCall& call, StepTime time);

  /// Notes that all attempts with this token or waiter's id are undone: they must not be sent
  /// again.
  void mark_undone(const std::string& token_or_waiter);

  struct ListParts {
    std::map<Address, Result<LockList, Fault>> of;  ///< each master that was asked
    std::size_t silent = 0;                         ///< number of those that did not answer in time
  };

  /// Adds the lists of those masters that were not asked yet: many views name the same ones, and a
  /// silent one takes a server timeout.
  asio::awaitable<void> list_parts(const std::vector<Address>& masters, const ListRequest& request,
                                   ListParts& parts);

  /// The lists of these masters as one; LockList::missing if not all of them answered.
  static LockList joined(const std::vector<Address>& masters, const ListParts& parts);

  /// Ends the subscription if the slot of its key has another master now.
  void drop_misplaced_subscription();

  /// The server at this address. It connects when it is first asked.
  std::shared_ptr<RedisServer> node(const Address& address);

  /// Ends the connections to all but a few servers that are no longer configured or named by the
  /// cluster: something may have to be undone there. If there are many others, ends those on which
  /// no question is under way, and nothing may have to be undone: a new connection is as good.
  void drop_unneeded_nodes();

  /// When they were asked last (Node::last_asked), and their addresses.
  using AskedNodes = std::vector<std::pair<std::uint64_t, Address>>;

  /// Ends the connections to these, but keeps those that were asked last.
  void drop_oldest(AskedNodes nodes, std::size_t kept);

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
  std::uint64_t questions_ = 0;  ///< number of questions to all nodes
  SlotMasters masters_;
  std::optional<std::set<Address>> named_;       ///< SlotMasters::named(), until the masters change
  std::optional<Address> subscribed_at_;         ///< the server with the current subscription
  std::uint16_t subscribed_slot_ = 0;            ///< in which its key is
  std::size_t subscription_turn_ = 0;            ///< how often that server has changed
  std::set<std::shared_ptr<Attempt>> attempts_;  ///< under way
  std::function<void()> disconnected_;
};

/// The vote for this endpoint, of any kind.
std::unique_ptr<RedisVote> make_server(asio::any_io_executor executor, const Clock& clock,
                                       const Endpoint& endpoint, const RedisServerOptions& options);

}  // namespace redlock::redis
