#pragma once

#include <string_view>
#include <vector>

#include "server.hpp"
#include "store/redis/endpoint.hpp"

namespace redlock::sim {

/// The address of a server, for clients and in the replies of other nodes.
redis::Address address_of(const Server& server);

/// The nodes of a vote: several servers that count as one. Each key is on one of them; a replica
/// gets the keys when it becomes the master. The clocks of the nodes agree, except that of a node
/// that takes over: it may be behind, so that nothing expires there too early.
class Nodes : public Peers {
 public:
  [[nodiscard]] std::size_t vote() const noexcept { return members_.front()->vote(); }
  /// The servers, in the order of the schedule.
  [[nodiscard]] const std::vector<Server*>& members() const noexcept { return members_; }

  /// The node where a client that follows every redirect finds or sets this key.
  [[nodiscard]] virtual Server& place_of(std::string_view key) = 0;

  /// With `crashes`, the master of the lock's keys crashes, and after half of the span its replica
  /// becomes the master with all of its data. Otherwise the two swap roles at once. After the span
  /// the old master is a replica. Does nothing if there is no replica to promote (for a cluster:
  /// while its slot moves), or if one of the two does not answer.
  void fail_over(Duration span, bool crashes);

 protected:
  /// `members` must outlive it, and belong to this vote.
  Nodes(Timeline& timeline, std::vector<Server*> members, Random random)
      : timeline_(timeline), members_(std::move(members)), random_(random) {}

  /// The master of the lock's keys, and the replica that would become the master.
  [[nodiscard]] virtual Server& master() = 0;
  [[nodiscard]] virtual Server* replica() = 0;
  /// To be called when the replica has become the master.
  virtual void changed_places(Server& old_master, Server& new_master) = 0;
  /// Whether a demoted master that did not crash closes its connections.
  [[nodiscard]] virtual bool demotion_cuts() = 0;

  /// How long another node takes to learn what two nodes agreed on.
  [[nodiscard]] Duration gossip();
  void hand_clock_on(Server& from, Server& to, Milliseconds lag);
  [[nodiscard]] Milliseconds any_lag() { return Milliseconds(random_.between(0, 50)); }
  /// Delivers the message to the node's subscribers soon, if the node answers then.
  void pass_on(Server& node, std::string_view channel, std::string_view message);

  Timeline& timeline_;
  std::vector<Server*> members_;
  Random random_;

 private:
  void promote(Server& old_master, Server& new_master);
};

}  // namespace redlock::sim
