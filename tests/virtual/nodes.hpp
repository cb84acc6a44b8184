#pragma once

#include <string_view>
#include <vector>

#include "server.hpp"
#include "store/redis/endpoint.hpp"

namespace redlock::sim {

/// Where clients find it, and what others call it.
redis::Address address_of(const Server& server);

/// Several servers that are one vote together: its nodes. Each key is at one of them; that a
/// replica has it, too, shows when it becomes the master. The clocks of a vote's nodes agree, but
/// for one that takes over: its clock may be behind, so that nothing ends there too early.
class Nodes : public Peers {
 public:
  [[nodiscard]] std::size_t vote() const noexcept { return members_.front()->vote(); }
  /// In their order in the schedule.
  [[nodiscard]] const std::vector<Server*>& members() const noexcept { return members_; }

  /// Where a client that follows every redirect finds this key, or puts it.
  [[nodiscard]] virtual Server& place_of(std::string_view key) = 0;

  /// The master of the lock's keys fails, and after half of the span its replica becomes the
  /// master with all that it had; or, unless it `crashes`, they change places at once. After the
  /// span the old one is its replica. Nothing happens while a node stands in the way.
  void fail_over(Duration span, bool crashes);

 protected:
  /// `members` must outlive it, and belong to this vote.
  Nodes(Timeline& timeline, std::vector<Server*> members, Random random)
      : timeline_(timeline), members_(std::move(members)), random_(random) {}

  /// The master of the lock's keys, and the replica that would take its place.
  [[nodiscard]] virtual Server& master() = 0;
  [[nodiscard]] virtual Server* replica() = 0;
  /// The replica is the master now.
  virtual void changed_places(Server& old_master, Server& new_master) = 0;
  /// The old one did not crash: whether its connections end all the same.
  [[nodiscard]] virtual bool demotion_cuts() = 0;

  /// Until somebody else knows what two nodes agreed on.
  [[nodiscard]] Duration gossip();
  void hand_clock_on(Server& from, Server& to, Milliseconds lag);
  [[nodiscard]] Milliseconds any_lag() { return Milliseconds(random_.between(0, 50)); }
  /// The node hears it soon, if it hears anything then.
  void pass_on(Server& node, std::string_view channel, std::string_view message);

  Timeline& timeline_;
  std::vector<Server*> members_;
  Random random_;

 private:
  void promote(Server& old_master, Server& new_master);
};

}  // namespace redlock::sim
