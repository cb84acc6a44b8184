#include "store/redis/cluster.hpp"

#include <algorithm>

#include "core/helper_keys.hpp"
#include "store/redis/error_reply.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

/// A cluster in a normal state needs one redirect, two while a slot moves.
constexpr int max_redirects = 5;

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

void add_new(std::vector<Address>& addresses, const Address& address) {
  if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
    addresses.push_back(address);
}

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
  const std::string token = undo_target_of(call).token;
  if (token.empty()) co_return co_await follow(std::move(call), deadline);
  undecided_.insert(token);
  auto reply = co_await follow(std::move(call), deadline);
  undecided_.erase(token);
  co_return reply;
}

asio::awaitable<ScriptReply> ClusterServer::follow(ScriptCall call, Instant deadline) {
  const std::string token = undo_target_of(call).token;
  const std::uint16_t slot = hash_slot(call.keys.front());
  auto owner = co_await locate(call.keys.front(), deadline);
  if (!owner) co_return unexpected(owner.error());
  Address place = *owner;
  bool asking = false;
  for (int redirects = 0;;) {
    // An undo that was sent meanwhile must not arrive after the compare-and-delete.
    if (!token.empty() && !undecided_.contains(token))
      co_return unexpected(Fault{FaultKind::silent, "undone before it was done"});
    RedisServer& server = node(place);
    const auto reply = co_await server.ask(call, asking, deadline);
    if (!reply) {
      slots_.clear();  // another master may have the slot by now
      co_return unexpected(at(place, reply.error()));
    }
    if (reply->type != Reply::Type::error) {
      facts_ = server.facts();
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
    if (subscribed_at_ && *subscribed_at_ != place) node(*subscribed_at_).drop_subscription();
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
  const auto reply = co_await node(member).ask(std::move(question), slots_limits, deadline);
  if (!reply) co_return reply.error();
  auto slots = slots_from(*reply, member);
  if (!slots) co_return slots.error();
  slots_ = std::move(*slots);
  acquaintances_ = {member};
  for (const SlotRange& range : slots_) {
    add_new(acquaintances_, range.master);
    for (const Address& replica : range.replicas) add_new(acquaintances_, replica);
  }
  co_return std::nullopt;
}

std::vector<Address> ClusterServer::acquaintances() const {
  std::vector<Address> all;
  if (!acquaintances_.empty()) all.push_back(acquaintances_.front());
  for (const Address& member : endpoint_.members) add_new(all, member);
  for (const Address& address : acquaintances_) add_new(all, address);
  return all;
}

std::vector<Address> ClusterServer::known_masters() const {
  std::vector<Address> all;
  for (const SlotRange& range : slots_) add_new(all, range.master);
  return all;
}

RedisServer& ClusterServer::node(const Address& address) {
  auto& server = nodes_[address];
  if (!server)
    server =
        std::make_unique<RedisServer>(executor_, clock_, endpoint_.server_at(address), options_);
  return *server;
}

void ClusterServer::post(ScriptCall call, NotUndone not_undone) {
  undecided_.erase(undone_by(call));
  for (const auto& [address, server] : nodes_) server->post(call, not_undone);
}

void ClusterServer::post_to_late(ScriptCall call, bool only_unanswered, NotUndone not_undone) {
  undecided_.erase(undone_by(call));
  for (const auto& [address, server] : nodes_)
    server->post_to_late(call, only_unanswered, not_undone);
}

asio::awaitable<Result<LockList, Fault>> ClusterServer::list(Listed listed, Instant deadline) {
  if (auto fault = co_await discover_topology(deadline)) co_return unexpected(std::move(*fault));
  LockList list;
  for (const Address& master : known_masters()) {
    const auto part = co_await node(master).list(listed, deadline);
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
    all.push_back({&node(master), escape_for_terminal(master.text())});
  }
  co_return all;
}

asio::awaitable<Result<RedisServer*, Fault>> ClusterServer::master_of(std::string key,
                                                                      Instant deadline) {
  const auto owner = co_await locate(std::move(key), deadline);
  if (!owner) co_return unexpected(owner.error());
  co_return &node(*owner);
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
  co_return co_await node(*owner).subscribe(std::move(resource), std::move(waiter),
                                            std::move(notified), deadline);
}

void ClusterServer::unsubscribe() {
  ++subscription_turn_;
  if (subscribed_at_) node(*std::exchange(subscribed_at_, std::nullopt)).unsubscribe();
}

bool ClusterServer::was_reached() const {
  return std::ranges::any_of(nodes_, [](const auto& node) { return node.second->was_reached(); });
}

asio::awaitable<void> ClusterServer::close(Instant deadline) {
  for (const auto& [address, server] : nodes_) co_await server->close(deadline);
}

std::unique_ptr<RedisVote> make_server(asio::any_io_executor executor, const Clock& clock,
                                       const Endpoint& endpoint,
                                       const RedisServerOptions& options) {
  if (endpoint.kind == Endpoint::Kind::cluster)
    return std::make_unique<ClusterServer>(std::move(executor), clock, endpoint, options);
  return std::make_unique<RedisServer>(std::move(executor), clock, endpoint, options);
}

}  // namespace redlock::redis
