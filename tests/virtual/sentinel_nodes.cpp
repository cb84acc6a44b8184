#include "sentinel_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "network.hpp"
#include "store/local/commands.hpp"

namespace redlock::sim {

SentinelNodes::SentinelNodes(Timeline& timeline, std::vector<Server*> members,
                             const std::vector<Server*>& sentinels, Random random)
    : Nodes(timeline, std::move(members), random), master_(members_.front()) {
  for (Server* member : members_) member->set_replica(member != master_);
  for (const Server* sentinel : sentinels) sentinels_.push_back({sentinel, master_});
}

const SentinelNodes::Sentinel* SentinelNodes::sentinel(const Server& server) const {
  const auto found = std::ranges::find(sentinels_, &server, &Sentinel::server);
  return found == sentinels_.end() ? nullptr : &*found;
}

Server* SentinelNodes::replica() {
  const auto found = std::ranges::find_if(
      members_, [](const Server* member) { return member->is_replica() && member->answers(); });
  return found == members_.end() ? nullptr : *found;
}

void SentinelNodes::changed_places(Server& old_master, Server& new_master) {
  old_master.set_replica(true);
  new_master.set_replica(false);
  master_ = &new_master;
  for (Sentinel& sentinel : sentinels_)
    timeline_.in(gossip(), [this, &sentinel] { sentinel.master = master_; });
}

std::optional<Reply> SentinelNodes::redirect(Server& at, Wire& /*wire*/, local::Arguments command) {
  if (sentinel(at) != nullptr && command[0] != "SENTINEL")
    return error_reply(fmt::format("ERR unknown command '{}'", command[0]));
  // The master streams all changes to its replica.
  if (at.is_replica()) at.keyspace().load(master_->keyspace().live());
  return std::nullopt;
}

std::optional<Reply> SentinelNodes::answer(Server& at, Wire& /*wire*/, local::Arguments command) {
  if (const Sentinel* const asked = sentinel(at)) {
    const redis::Address address = address_of(*asked->master);
    return array_reply({text_reply(address.host), text_reply(std::to_string(address.port))});
  }
  if (command[0] != "ROLE") return std::nullopt;
  if (!at.is_replica()) {
    return array_reply({text_reply("master"), integer_reply(0), array_reply({})});
  }
  const redis::Address address = address_of(*master_);
  return array_reply({text_reply("slave"), text_reply(address.host), integer_reply(address.port),
                      text_reply("connected"), integer_reply(0)});
}

void SentinelNodes::published(Server& at, std::string_view channel, std::string_view message) {
  if (&at != master_) return;
  for (Server* other : members_) {
    if (other != &at) pass_on(*other, channel, message);
  }
}

}  // namespace redlock::sim
