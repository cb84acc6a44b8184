#pragma once

#include <cstdint>
#include <optional>

#include "nodes.hpp"

namespace redlock::sim {

/// A Redis Cluster of two masters with a replica each. All locks are in one slot, which moves from
/// one master to the other key by key, as with `redis-cli --cluster reshard`. Source: Redis Cluster
/// specification, and getNodeByQuery() of Redis 7.0 and 6.2.
class ClusterNodes final : public Nodes {
 public:
  /// The version decides what a master answers that has only some keys of a slot that it migrates.
  enum class Version { redis6, redis7 };

  /// `members`: a master with all slots, its replica, another master, its replica.
  ClusterNodes(Timeline& timeline, std::vector<Server*> members, std::uint16_t slot,
               Version version, Random random);

  /// Moves the slot to the other master within about that span. Does nothing while it moves
  /// already.
  void move_slot(Duration span);

  /// Begins to move the slot, and gives that up after the span, before any key has moved. Does
  /// nothing while the slot moves already.
  void stall_slot(Duration span);

  [[nodiscard]] Server& place_of(std::string_view key) override;
  std::optional<Reply> redirect(Server& at, Wire& wire, local::Arguments command) override;
  std::optional<Reply> answer(Server& at, Wire& wire, local::Arguments command) override;
  void published(Server& at, std::string_view channel, std::string_view message) override;

 protected:
  [[nodiscard]] Server& master() override { return *members_[owner_]; }
  [[nodiscard]] Server* replica() override;
  void changed_places(Server& old_master, Server& new_master) override;
  [[nodiscard]] bool demotion_cuts() override { return false; }

 private:
  using Node = std::size_t;  ///< among the members

  struct Migration {
    Node source;
    Node target;
    Duration pause;  ///< from one key to the next
  };

  [[nodiscard]] Node node(const Server& server) const;
  [[nodiscard]] static Node partner(Node node) { return node ^ 1U; }
  [[nodiscard]] Node master_of_others(Node of) const;
  [[nodiscard]] bool is_up(Node node) const { return members_[node]->answers(); }
  void move_next_key();
  void end_migration();
  /// All other nodes learn within the gossip delay which node has the slot.
  void tell_others();
  [[nodiscard]] Reply redirection(std::string_view word, Node to) const;
  [[nodiscard]] Reply slots(Node as_seen_by) const;
  [[nodiscard]] Reply range(std::int64_t first, std::int64_t last, Node master) const;

  std::uint16_t slot_;
  Version version_;
  Node owner_ = 0;
  std::vector<Node> views_;  ///< which node has the slot, as each node sees it
  std::optional<Migration> migration_;
};

}  // namespace redlock::sim
