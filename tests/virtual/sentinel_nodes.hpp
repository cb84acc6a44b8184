#pragma once

#include <vector>

#include "nodes.hpp"

namespace redlock::sim {

/// A master and its replicas, and the sentinels that know which of them is the master. Source:
/// "Guidelines for Redis clients with support for Redis Sentinel".
class SentinelNodes final : public Nodes {
 public:
  /// `members`: the first is the master. The sentinels have no keys, and must outlive this, too.
  SentinelNodes(Timeline& timeline, std::vector<Server*> members,
                const std::vector<Server*>& sentinels, Random random);

  [[nodiscard]] Server& place_of(std::string_view) override { return *master_; }
  std::optional<Reply> redirect(Server& at, Wire& wire, local::Arguments command) override;
  std::optional<Reply> answer(Server& at, Wire& wire, local::Arguments command) override;
  void published(Server& at, std::string_view channel, std::string_view message) override;

 protected:
  [[nodiscard]] Server& master() override { return *master_; }
  [[nodiscard]] Server* replica() override;
  void changed_places(Server& old_master, Server& new_master) override;
  /// Sentinels close them with CLIENT KILL; FAILOVER does not.
  [[nodiscard]] bool demotion_cuts() override { return random_.chance(500); }

 private:
  struct Sentinel {
    const Server* server;
    const Server* master;  ///< as the sentinel knows it
  };
  /// Null when the server is no sentinel.
  [[nodiscard]] const Sentinel* sentinel(const Server& server) const;

  Server* master_;
  std::vector<Sentinel> sentinels_;
};

}  // namespace redlock::sim
