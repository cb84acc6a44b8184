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
#include "store/redis/view_sources.hpp"

namespace redlock::redis {

/// A Redis Cluster as one vote: each question goes to the master of the key's slot, and follows
/// MOVED and ASK. The cluster is asked for that master first, so that no script is sent to a wrong
/// server that might execute it later.
///
/// One node's view of the cluster is used until it fails: it names no master of the slot, or that
/// master cannot be reached, refuses, is not a master, or is silent. Then the views of several
/// nodes are compared (PROTOCOL R13).
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

  /// The master of the key's slot; asks the cluster if it is not known yet.
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

  /// A call in a slot that moves, reduced to the keys of the server that has the lock's key.
  struct Part {
    Address place;
    bool asking;
    ScriptCall call;
  };
  /// Finds the server that has the lock's key, and leaves out the keys that are not there (PROTOCOL
  /// D1). `owner`: the master that the slot moves from.
  asio::awaitable<Result<Part, Fault>> find_part(ScriptCall call, Address owner, Instant deadline);

  asio::awaitable<ScriptReply> follow(ScriptCall call, std::shared_ptr<const Attempt> attempt,
                                      Instant deadline);

  /// Notes that all attempts with this token or waiter's id are undone: they must not be sent
  /// again.
  void mark_undone(const std::string& token_or_waiter);

  /// The servers that a view wrongly named as the master in this attempt, with their faults.
  using Refuted = std::map<Address, Fault>;

  /// Finds a view with a master of the slot that is not refuted, and uses it. A view that names the
  /// master at which the last view failed is used only if there is no other.
  asio::awaitable<std::optional<Fault>> find_view(std::uint16_t slot, const Refuted& refuted,
                                                  Instant deadline);

  /// The views of several nodes, and the faults of the nodes without one.
  struct Views {
    std::vector<ClusterView> views;
    Fault faults;
  };
  asio::awaitable<Views> ask_for_views(std::vector<Address> nodes, bool with_epoch,
                                       Instant deadline);
  asio::awaitable<Result<ClusterView, Fault>> ask_for_view(Address from, bool with_epoch,
                                                           Instant deadline);

  /// The trustworthy views that have a master of every slot, the best first; at least one, or a
  /// fault.
  asio::awaitable<Result<std::vector<ClusterView>, Fault>> complete_views(Instant deadline);

  asio::awaitable<Result<LockList, Fault>> list_from(const ClusterView& view,
                                                     const ListRequest& request);

  void use(ClusterView view);

  /// Notes that this master failed for that slot. If the view in use names it, the view failed,
  /// too.
  void doubt(const Address& master, std::uint16_t slot);

  /// Ends the subscription if the slot of its key has another master now.
  void drop_misplaced_subscription();

  /// Adds `place`, where `fault` shows that nothing was done, to the refuted servers. Returns a
  /// master that another view names and that is not refuted; or the fault, if there is none.
  asio::awaitable<Result<Address, Fault>> master_elsewhere(std::uint16_t slot, Address place,
                                                           Refuted& refuted, Fault fault,
                                                           Instant deadline);

  /// The server at this address. It connects when it is first asked.
  std::shared_ptr<RedisServer> node(const Address& address);

  /// Ends the connections to servers that are no longer configured or named by the cluster. Keeps
  /// those that were asked last, as something may have to be undone there.
  void drop_stale_nodes();

  /// The master at which a view failed, and for which slot.
  struct Doubt {
    Address master;
    std::uint16_t slot;
  };

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
  std::uint64_t questions_ = 0;   ///< number of questions to all nodes
  std::vector<SlotRange> slots_;  ///< of the view in use; the first range with a slot applies
  ViewSources sources_;
  Address source_;                               ///< the node that gave the view in use
  std::optional<Doubt> doubt_;                   ///< until the slot has a master that answers
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
