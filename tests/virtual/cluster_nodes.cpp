#include "cluster_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "network.hpp"
#include "store/local/commands.hpp"

namespace redlock::sim {
namespace {

constexpr std::int64_t last_slot = 16383;

/// How soon a migration is tried again after a node did not answer.
constexpr std::chrono::milliseconds again{20};

/// The keys that a script declares, or that TYPE names; empty for any other command.
local::Arguments keys_of(local::Arguments command) {
  if (command[0] == "TYPE") return command.subspan(1);
  if (command[0] != "EVAL" && command[0] != "EVALSHA") return {};
  std::size_t count = 0;
  std::from_chars(command[2].data(), command[2].data() + command[2].size(), count);
  return command.subspan(3, count);
}

}  // namespace

ClusterNodes::ClusterNodes(Timeline& timeline, std::vector<Server*> members, std::uint16_t slot,
                           Version version, Random random)
    : Nodes(timeline, std::move(members), random),
      slot_(slot),
      version_(version),
      views_(members_.size(), owner_) {
  for (Node node = 0; node < members_.size(); ++node) members_[node]->set_replica(node % 2 == 1);
}

ClusterNodes::Node ClusterNodes::node(const Server& server) const {
  return static_cast<Node>(std::ranges::find(members_, &server) - members_.begin());
}

Server* ClusterNodes::replica() {
  // A replica does not know that a slot is being moved.
  return migration_ ? nullptr : members_[partner(owner_)];
}

ClusterNodes::Node ClusterNodes::master_of_others(Node of) const {
  const Node one = of < 2 ? 2 : 0;
  return members_[one]->is_replica() ? partner(one) : one;
}

void ClusterNodes::changed_places(Server& old_master, Server& new_master) {
  old_master.set_replica(true);
  new_master.set_replica(false);
  owner_ = node(new_master);
  // The old master learns of it before it takes another command.
  views_[node(old_master)] = views_[owner_] = owner_;
  tell_others();
}

void ClusterNodes::tell_others() {
  for (Node& view : views_) {
    if (view != owner_) timeline_.in(gossip(), [this, &view] { view = owner_; });
  }
}

void ClusterNodes::move_slot(Duration span) {
  const Node target = master_of_others(owner_);
  if (migration_ || !is_up(owner_) || !is_up(target)) return;
  Server& source = *members_[owner_];
  hand_clock_on(source, *members_[target], any_lag());
  const auto keys = static_cast<std::int64_t>(source.keyspace().live().size());
  migration_ = Migration{owner_, target, span / (keys + 1)};
  timeline_.in(migration_->pause, [this] { move_next_key(); });
}

void ClusterNodes::stall_slot(Duration span) {
  if (migration_) return;
  migration_ = Migration{owner_, master_of_others(owner_), Duration::zero()};
  timeline_.in(span, [this] { migration_.reset(); });
}

void ClusterNodes::move_next_key() {
  Server& source = *members_[migration_->source];
  Server& target = *members_[migration_->target];
  if (!source.answers() || !target.answers()) {
    timeline_.in(again, [this] { move_next_key(); });
    return;
  }
  const local::Keyspace::Entries& keys = source.keyspace().live();
  if (keys.empty()) return end_migration();

  // If the source's clock was set back meanwhile, no key may expire too early at the target.
  if (target.wall() > source.wall()) hand_clock_on(source, target, Milliseconds::zero());
  const auto next =
      std::next(keys.begin(), static_cast<std::ptrdiff_t>(random_.below(keys.size())));
  const auto [key, entry] = *next;
  local::Entry& there = target.keyspace().put(key, entry.value);
  // MIGRATE passes on the remaining ttl of the key.
  if (entry.expires)
    there.expires = target.keyspace().now() +
                    std::max(Milliseconds(1), *entry.expires - source.keyspace().now());
  source.keyspace().erase(key);
  if (target.watcher != nullptr) target.watcher->moved(source, target);
  timeline_.in(random_.between(Duration::zero(), 2 * migration_->pause),
               [this] { move_next_key(); });
}

void ClusterNodes::end_migration() {
  owner_ = migration_->target;
  views_[owner_] = owner_;
  timeline_.in(gossip(), [this] {
    views_[migration_->source] = owner_;
    migration_.reset();
    tell_others();
  });
}

Server& ClusterNodes::place_of(std::string_view key) {
  Server& owner = *members_[owner_];
  const bool has_gone = migration_ && owner.keyspace().find(key) == nullptr;
  return has_gone ? *members_[migration_->target] : owner;
}

std::optional<Reply> ClusterNodes::redirect(Server& at, Wire& wire, local::Arguments command) {
  const bool asking = std::exchange(wire.asking, false);
  const local::Arguments keys = keys_of(command);
  if (keys.empty()) return std::nullopt;
  const Node here = node(at);
  const auto missing = std::ranges::count_if(
      keys, [&](std::string_view key) { return at.keyspace().find(key) == nullptr; });
  const bool has_some = static_cast<std::size_t>(missing) < keys.size();
  const Reply try_again = error_reply("TRYAGAIN Multiple keys request during rehashing of slot");
  if (views_[here] != here) {
    const bool imports = migration_ && migration_->target == here;
    if (!imports || !asking) return redirection("MOVED", views_[here]);
    return keys.size() > 1 && missing > 0 ? std::optional(try_again) : std::nullopt;
  }
  if (!migration_ || migration_->source != here || missing == 0) return std::nullopt;
  if (has_some && version_ == Version::redis7) return try_again;
  return redirection("ASK", migration_->target);
}

std::optional<Reply> ClusterNodes::answer(Server& at, Wire& wire, local::Arguments command) {
  if (command[0] == "ASKING") {
    wire.asking = true;
    return status_reply("OK");
  }
  if (command[0] == "CLUSTER") return slots(node(at));
  return std::nullopt;
}

Reply ClusterNodes::redirection(std::string_view word, Node to) const {
  return error_reply(fmt::format("{} {} {}", word, slot_, address_of(*members_[to]).text()));
}

Reply ClusterNodes::slots(Node as_seen_by) const {
  // All slots but this one stay with the first two nodes.
  const Node first = members_[0]->is_replica() ? 1 : 0;
  const Node owner = views_[as_seen_by];
  std::vector<Reply> ranges;
  if (slot_ > 0) ranges.push_back(range(0, slot_ - 1, first));
  ranges.push_back(range(slot_, slot_, owner));
  if (slot_ < last_slot) ranges.push_back(range(slot_ + 1, last_slot, first));
  return array_reply(std::move(ranges));
}

Reply ClusterNodes::range(std::int64_t first, std::int64_t last, Node master) const {
  const auto described = [this](Node node) {
    const redis::Address address = address_of(*members_[node]);
    return array_reply({text_reply(address.host), integer_reply(address.port),
                        text_reply(fmt::format("{:040x}", node))});
  };
  return array_reply(
      {integer_reply(first), integer_reply(last), described(master), described(partner(master))});
}

void ClusterNodes::published(Server& at, std::string_view channel, std::string_view message) {
  for (Server* other : members_) {
    if (other != &at) pass_on(*other, channel, message);
  }
}

}  // namespace redlock::sim
