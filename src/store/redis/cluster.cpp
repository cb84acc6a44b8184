#include "store/redis/cluster.hpp"

#include <algorithm>

#include "core/helper_keys.hpp"
#include "store/redis/error_reply.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

/// A cluster in a normal state needs one redirect, two while a slot moves.
constexpr int max_redirects = 5;

/// Of servers that are named no more, those asked last are kept. One question meets at most
/// max_redirects of them, and what it left there can still be undone.
constexpr std::size_t max_strangers = 16;

/// 16384 slots of a cluster that moved them one by one; each with a master and some replicas, which
/// take 1.5 KB of memory.
constexpr ReplyLimits slots_limits{4, 16384, 64 * 1024, 32 * 1024 * 1024};

/// Whether the call means the same for an exclusive lease with the lock's key alone. Missing helper
/// keys do no harm, and the scripts treat an undeclared key as missing (PROTOCOL D1). For a share
/// the scripts then answer that they cannot tell.
bool may_go_alone(const ScriptCall& call) {
  return call.keys.size() > 1 &&
         (call.script == &scripts::extend || call.script == &scripts::release);
}

Fault at(const Address& address, Fault fault) {
  fault.text = escape_for_terminal(address.text()) + ": " + fault.text;
  return fault;
}

/// Addresses without repetitions, in the order in which they came.
class DistinctAddresses {
 public:
  void add(const Address& address) {
    if (known_.insert(address).second) in_order_.push_back(address);
  }
  std::vector<Address> take() { return std::move(in_order_); }

 private:
  std::vector<Address> in_order_;
  std::set<Address> known_;
};

}  // namespace

ClusterServer::ClusterServer(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
                             RedisServerOptions options)
    : executor_(std::move(executor)),
      clock_(clock),
      endpoint_(std::move(endpoint)),
      options_(std::move(options)),
      name_(endpoint_.name()) {
  options_.slots_move = true;
}

asio::awaitable<ScriptReply> ClusterServer::call(ScriptCall call, Instant deadline) {
  const auto attempt = std::make_shared<Attempt>();
  attempt->target = undo_target_of(call);
  attempts_.insert(attempt);
  auto reply = co_await follow(std::move(call), attempt, deadline);
  attempts_.erase(attempt);
  co_return reply;
}

asio::awaitable<ScriptReply> ClusterServer::follow(ScriptCall call,
                                                   std::shared_ptr<const Attempt> attempt,
                                                   Instant deadline) {
  const std::uint16_t slot = hash_slot(call.keys.front());
  auto owner = co_await locate(call.keys.front(), deadline);
  if (!owner) co_return unexpected(owner.error());
  Address place = *owner;
  bool asking = false;
  for (int redirects = 0;;) {
    // The undo went only to the servers that had been asked by then.
    if (attempt->undone)
      co_return unexpected(Fault{FaultKind::silent, "undone before it was done"});
    const std::shared_ptr<RedisServer> server = node(place);
    const auto reply = co_await server->ask(call, asking, deadline);
    if (!reply) {
      slots_.clear();  // another master may have the slot by now
      co_return unexpected(at(place, reply.error()));
    }
    if (reply->type != Reply::Type::error) {
      facts_ = server->facts();
      co_return *reply;
    }
    if (is_try_again(reply->text) && may_go_alone(call)) {
      // Ask the master that still has the slot: it alone knows whether it still has the key.
      call.keys.resize(1);
      place = *owner;
      asking = false;
      continue;
    }
    const auto redirect = redirect_from(reply->text, place);
    if (!redirect) co_return unexpected(at(place, redirect.error()));
    if (!*redirect) {
      slots_.clear();  // CLUSTERDOWN, or a replica that lags behind
      co_return unexpected(at(place, fault_of_error(reply->text)));
    }
    if (++redirects > max_redirects) {
      slots_.clear();
      co_return unexpected(
          Fault{FaultKind::unavailable, "its servers do not agree who has this key: more than " +
                                            std::to_string(max_redirects) + " redirects"});
    }
    place = (*redirect)->to;
    asking = (*redirect)->ask;
    if (asking) continue;
    owner = place;
    if (subscribed_at_ && *subscribed_at_ != place) node(*subscribed_at_)->drop_subscription();
    std::erase_if(slots_, [slot](const SlotRange& range) {
      return range.first == slot && range.last == slot;
    });
    slots_.insert(slots_.begin(), SlotRange{slot, slot, place, {}});
  }
}

asio::awaitable<Result<Address, Fault>> ClusterServer::locate(std::string key, Instant deadline) {
  const std::uint16_t slot = hash_slot(key);
  const auto has_slot = [slot](const SlotRange& range) {
    return range.first <= slot && slot <= range.last;
  };
  if (std::none_of(slots_.begin(), slots_.end(), has_slot)) {
    if (auto fault = co_await discover_topology(deadline)) co_return unexpected(std::move(*fault));
  }
  const auto range = std::find_if(slots_.begin(), slots_.end(), has_slot);
  if (range == slots_.end())
    co_return unexpected(
        Fault{FaultKind::unavailable, "no server of its cluster has the slot of this key"});
  co_return range->master;
}

asio::awaitable<std::optional<Fault>> ClusterServer::discover_topology(Instant deadline) {
  Fault none;
  for (const Address& member : acquaintances()) {
    const auto fault = co_await ask_for_slots(member, time_for_one(clock_.now(), deadline));
    if (!fault) co_return std::nullopt;
    // Silence hides more than any answer does.
    none.kind = none.text.empty() || none.kind == fault->kind ? fault->kind : FaultKind::silent;
    none.text += (none.text.empty() ? "" : "; ") + at(member, *fault).text;
  }
  co_return none;
}

asio::awaitable<std::optional<Fault>> ClusterServer::ask_for_slots(Address member,
                                                                   Instant deadline) {
  Command question{"CLUSTER", "SLOTS"};
  const std::shared_ptr<RedisServer> server = node(member);
  const auto reply = co_await server->ask(std::move(question), slots_limits, deadline);
  if (!reply) co_return reply.error();
  auto slots = slots_from(*reply, member);
  if (!slots) co_return slots.error();
  slots_ = std::move(*slots);
  DistinctAddresses all;
  all.add(member);
  for (const SlotRange& range : slots_) {
    all.add(range.master);
    for (const Address& replica : range.replicas) all.add(replica);
  }
  acquaintances_ = all.take();
  co_return std::nullopt;
}

std::vector<Address> ClusterServer::acquaintances() const {
  DistinctAddresses all;
  if (!acquaintances_.empty()) all.add(acquaintances_.front());
  for (const Address& member : endpoint_.members) all.add(member);
  for (const Address& address : acquaintances_) all.add(address);
  return all.take();
}

std::vector<Address> ClusterServer::known_masters() const {
  DistinctAddresses all;
  for (const SlotRange& range : slots_) all.add(range.master);
  return all.take();
}

std::shared_ptr<RedisServer> ClusterServer::node(const Address& address) {
  Node& node = nodes_[address];
  node.last_asked = ++questions_;
  if (node.server) return node.server;
  auto server =
      std::make_shared<RedisServer>(executor_, clock_, endpoint_.server_at(address), options_);
  node.server = server;
  forget_strangers();
  return server;
}

void ClusterServer::forget_strangers() {
  if (nodes_.size() <= max_strangers) return;
  std::set<Address> named(endpoint_.members.begin(), endpoint_.members.end());
  named.insert(acquaintances_.begin(), acquaintances_.end());
  for (const SlotRange& range : slots_) named.insert(range.master);
  if (subscribed_at_) named.insert(*subscribed_at_);
  std::vector<std::pair<std::uint64_t, Address>> strangers;
  for (const auto& [address, node] : nodes_) {
    if (!named.contains(address)) strangers.emplace_back(node.last_asked, address);
  }
  if (strangers.size() <= max_strangers) return;
  std::ranges::sort(strangers);
  strangers.resize(strangers.size() - max_strangers);
  for (const auto& [last_asked, address] : strangers) {
    // First out of the map: abort() runs callbacks, and one may post an undo to all that are in it.
    const auto stranger = nodes_.extract(address);
    stranger.mapped().server->abort();
  }
}

void ClusterServer::mark_undone(const std::string& token_or_waiter) {
  for (const auto& attempt : attempts_) {
    const auto& [token, waiter] = attempt->target;
    if (token == token_or_waiter || waiter == token_or_waiter) attempt->undone = true;
  }
}

void ClusterServer::post(const ScriptCall& call, const NotUndone& not_undone) {
  mark_undone(undone_by(call));
  for (const auto& [address, node] : nodes_) node.server->post(call, not_undone);
}

void ClusterServer::post_to_late(const ScriptCall& call, bool only_unanswered,
                                 const NotUndone& not_undone) {
  mark_undone(undone_by(call));
  for (const auto& [address, node] : nodes_)
    node.server->post_to_late(call, only_unanswered, not_undone);
}

asio::awaitable<Result<LockList, Fault>> ClusterServer::list(Listed listed, Instant deadline) {
  if (auto fault = co_await discover_topology(deadline)) co_return unexpected(std::move(*fault));
  LockList list;
  for (const Address& master : known_masters()) {
    const std::shared_ptr<RedisServer> server = node(master);
    const auto part = co_await server->list(listed, deadline);
    if (!part) co_return unexpected(at(master, part.error()));
    list.resources.insert(list.resources.end(), part->resources.begin(), part->resources.end());
  }
  co_return list;
}

asio::awaitable<Result<std::vector<RedisVote::Master>, Fault>> ClusterServer::masters(
    Instant deadline) {
  if (auto fault = co_await discover_topology(deadline)) co_return unexpected(std::move(*fault));
  std::vector<Master> all;
  for (const Address& master : known_masters()) {
    all.push_back({node(master), escape_for_terminal(master.text())});
  }
  co_return all;
}

asio::awaitable<Result<std::shared_ptr<RedisServer>, Fault>> ClusterServer::master_of(
    std::string key, Instant deadline) {
  const auto owner = co_await locate(std::move(key), deadline);
  if (!owner) co_return unexpected(owner.error());
  co_return node(*owner);
}

asio::awaitable<std::optional<Fault>> ClusterServer::subscribe(
    Resource resource, std::string waiter, std::function<void(Notification)> notified,
    Instant deadline) {
  // PUBLISH counts only clients that are subscribed at the same server (PROTOCOL D1).
  unsubscribe();
  const std::size_t turn = ++subscription_turn_;
  const auto owner = co_await locate(resource.key(), deadline);
  if (!owner) co_return owner.error();
  if (turn != subscription_turn_) co_return Fault{FaultKind::silent, "the subscription was ended"};
  subscribed_at_ = *owner;
  const std::shared_ptr<RedisServer> server = node(*owner);
  co_return co_await server->subscribe(std::move(resource), std::move(waiter), std::move(notified),
                                       deadline);
}

void ClusterServer::unsubscribe() {
  ++subscription_turn_;
  if (subscribed_at_) node(*std::exchange(subscribed_at_, std::nullopt))->unsubscribe();
}

bool ClusterServer::was_reached() const {
  return std::ranges::any_of(nodes_,
                             [](const auto& node) { return node.second.server->was_reached(); });
}

asio::awaitable<void> ClusterServer::close(Instant deadline) {
  const auto nodes = nodes_;  // some may be forgotten meanwhile
  for (const auto& [address, node] : nodes) co_await node.server->close(deadline);
}

std::unique_ptr<RedisVote> make_server(asio::any_io_executor executor, const Clock& clock,
                                       const Endpoint& endpoint,
                                       const RedisServerOptions& options) {
  if (endpoint.kind == Endpoint::Kind::cluster)
    return std::make_unique<ClusterServer>(std::move(executor), clock, endpoint, options);
  return std::make_unique<RedisServer>(std::move(executor), clock, endpoint, options);
}

}  // namespace redlock::redis
