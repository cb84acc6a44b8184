#include "store/redis/cluster.hpp"

#include <algorithm>

#include "core/helper_keys.hpp"
#include "core/protocol.hpp"
#include "store/redis/error_reply.hpp"
#include "support/spawn.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

/// A healthy cluster needs one redirect, or two while a slot moves.
constexpr int max_redirects = 5;

/// The number of servers that are kept after the cluster stopped naming them, those asked last. One
/// question reaches at most max_redirects of them, so what it left there can still be undone.
constexpr std::size_t max_stale_nodes = 16;

/// The number of servers with connections, unless more of them are in use: a cluster may have
/// thousands. As many as are asked at a time when all locks are inspected (engine/inspect).
constexpr std::size_t max_nodes = 64;

/// The number of masters that list their locks at a time. Each may be silent for a server timeout.
constexpr std::size_t max_listing = 16;

/// After so many masters that gave no list within a server timeout, the rest is not asked for one:
/// a server may name thousands.
constexpr std::size_t max_silent = 64;

/// The number of masters that are named as missing in a list.
constexpr std::size_t max_named_missing = 8;

constexpr std::string_view try_again = "TRYAGAIN";

/// Whether the server answers that it cannot serve any key as a master. Then a view that names it
/// as a master may be wrong.
bool is_no_master(const Reply& reply) {
  return reply.type == Reply::Type::error &&
         (reply.text.starts_with("CLUSTERDOWN") || reply.text.starts_with("MASTERDOWN") ||
          reply.text.starts_with("LOADING") || is_read_only(reply.text));
}

}  // namespace

ClusterServer::ClusterServer(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
                             RedisServerOptions options)
    : executor_(std::move(executor)),
      clock_(clock),
      endpoint_(std::move(endpoint)),
      options_(std::move(options)),
      name_(endpoint_.name()),
      masters_(
          executor_, clock_, endpoint_.members,
          [this](const Address& address) { return node(address); },
          [this] {
            named_.reset();
            drop_misplaced_subscription();
          }) {
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
  const StepTime time(clock_, deadline);
  Route route;
  route.slot = hash_slot(call.keys.front());
  const auto owner = co_await masters_.locate(route.slot, route.refuted, time.next());
  if (!owner) co_return unexpected(owner.error());
  route.lead_to_owner(*owner);
  for (;;) {
    // The undo went only to the servers that had been asked before it.
    if (attempt->undone) co_return unexpected(Fault{FaultKind::silent, "cancelled"});
    const std::shared_ptr<RedisServer> server = node(route.place);
    const auto [reply, link] = co_await server->answer_to(call, route.asking, time);
    std::optional<Fault> fault;
    if (!reply || is_no_master(*reply)) {
      fault = fault_at(route.place, reply ? fault_of_error(reply->text) : reply.error());
      masters_.doubt(route.place, route.slot);
      // It may have received the question, so the question must not go to another server.
      if (!reply && !link->failed_to_open()) co_return unexpected(std::move(*fault));
      fault = co_await lead_to_other_master(route, std::move(*fault), time.next());
    } else if (reply->type != Reply::Type::error) {
      facts_ = server->facts();
      masters_.confirm(route.slot);
      co_return co_await finish(call, *reply, attempt, time.next());
    } else if (is_try_again(reply->text) && may_lack_keys(call)) {
      fault = co_await lead_to_part(route, call, time);
    } else {
      fault = redirect(route, reply->text, *link);
    }
    if (fault) co_return unexpected(std::move(*fault));
  }
}

asio::awaitable<ScriptReply> ClusterServer::finish(const ScriptCall& call, Reply reply,
                                                   std::shared_ptr<const Attempt> attempt,
                                                   Instant deadline) {
  std::optional<ScriptCall> rest = rest_of(call, reply);
  if (!rest) co_return reply;
  auto done = co_await follow(std::move(*rest), std::move(attempt), deadline);
  // A ttl that is not remembered might be shortened later. Without the sign, `stop` learns less.
  if (!done && call.script == &scripts::extend) co_return unexpected(std::move(done.error()));
  const std::size_t at = protocol::reply::free_asked::ended;
  if (call.script == &scripts::ask && done && reply.elements.size() == at + 1)
    reply.elements[at].integer = done->integer;
  co_return reply;
}

asio::awaitable<std::optional<Fault>> ClusterServer::lead_to_other_master(Route& route, Fault fault,
                                                                          Instant deadline) {
  if (++route.redirects > max_redirects) co_return fault;
  route.refuted.insert_or_assign(route.place, fault);
  const auto owner = co_await masters_.locate(route.slot, route.refuted, deadline);
  if (!owner) co_return fault;
  route.lead_to_owner(*owner);
  co_return std::nullopt;
}

std::optional<Fault> ClusterServer::redirect(Route& route, std::string_view error_text,
                                             const Link& link) {
  const auto redirect = redirect_from(error_text, route.place);
  if (!redirect) return fault_at(route.place, redirect.error());
  if (!*redirect) return fault_at(route.place, fault_of_error(error_text));
  const auto& [to, ask] = **redirect;
  if (++route.redirects > max_redirects) {
    masters_.forget();
    return Fault{FaultKind::unavailable, "its servers disagree on who has this key: more than " +
                                             std::to_string(max_redirects) + " redirects"};
  }
  if (const auto known = route.refuted.find(to); known != route.refuted.end()) return known->second;
  if (is_loopback(to.host) && !link.stays_on_this_host())
    return fault_at(route.place, foreign_loopback(to));
  if (ask) {
    route.place = to;
    route.asking = true;
  } else {
    route.lead_to_owner(to);
    masters_.moved(route.slot, to);
  }
  return std::nullopt;
}

asio::awaitable<std::optional<Fault>> ClusterServer::lead_to_part(Route& route, ScriptCall& call,
                                                                  StepTime time) {
  // Ask the master that still owns the slot first: only it knows whether it still has the lock's
  // key.
  route.lead_to_owner(route.owner);
  for (;;) {
    const std::shared_ptr<RedisServer> server = node(route.place);
    const auto types = co_await server->types_of(call.keys, route.asking, time.next());
    if (!types) co_return fault_at(route.place, types.error());
    std::vector<bool> here;
    for (const Reply& type : types->replies)
      here.push_back(type.type == Reply::Type::status && type.text != "none");
    if (here.size() == call.keys.size() && here.front()) {
      call = with_keys_that_are(here, std::move(call));
      co_return std::nullopt;
    }
    const auto redirect = redirect_from(types->replies.front().text, route.place);
    if (route.asking || !redirect || !*redirect || !(*redirect)->ask) break;
    if (is_loopback((*redirect)->to.host) && !types->link->stays_on_this_host())
      co_return fault_at(route.place, foreign_loopback((*redirect)->to));
    route.place = (*redirect)->to;
    route.asking = true;
  }
  // Neither server has the lock's key. A question about one exclusive lease with that key alone
  // shows that the lease is gone. For other scripts, a free lock cannot be distinguished from one
  // that is moving.
  if (!may_lack_all_keys(call)) co_return fault_at(route.owner, fault_of_error(try_again));
  call.keys.resize(1);
  route.lead_to_owner(route.owner);
  co_return std::nullopt;
}

void ClusterServer::drop_misplaced_subscription() {
  if (!subscribed_at_) return;
  const Address* master = masters_.known(subscribed_slot_);
  if (master != nullptr && *master != *subscribed_at_) node(*subscribed_at_)->drop_subscription();
}

std::shared_ptr<RedisServer> ClusterServer::node(const Address& address) {
  Node& node = nodes_[address];
  node.last_asked = ++questions_;
  if (node.server) return node.server;
  auto server =
      std::make_shared<RedisServer>(executor_, clock_, endpoint_.server_at(address), options_);
  server->on_disconnect(disconnected_);
  node.server = server;
  drop_unneeded_nodes();
  return server;
}

void ClusterServer::drop_unneeded_nodes() {
  if (nodes_.size() <= max_stale_nodes) return;
  if (!named_) named_ = masters_.named();
  AskedNodes stale;
  AskedNodes spare;
  for (const auto& [address, node] : nodes_) {
    if (subscribed_at_ == address) continue;
    if (!named_->contains(address)) {
      stale.emplace_back(node.last_asked, address);
    } else if (node.server.use_count() == 1 && !node.server->may_have_changed()) {
      spare.emplace_back(node.last_asked, address);
    }
  }
  const std::size_t others = nodes_.size() - spare.size();
  drop_oldest(std::move(stale), max_stale_nodes);
  drop_oldest(std::move(spare), others < max_nodes ? max_nodes - others : 0);
}

void ClusterServer::drop_oldest(AskedNodes nodes, std::size_t kept) {
  if (nodes.size() <= kept) return;
  std::ranges::sort(nodes);
  nodes.resize(nodes.size() - kept);
  for (const auto& [last_asked, address] : nodes) {
    // Remove it from the map first: abort() runs callbacks, which may post an undo to all nodes in
    // the map.
    const auto node = nodes_.extract(address);
    node.mapped().server->abort();
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

asio::awaitable<Result<LockList, Fault>> ClusterServer::list(ListRequest request) {
  const auto views = co_await masters_.complete_views(clock_.now() + request.answer_timeout);
  if (!views) co_return unexpected(views.error());
  ListParts parts;
  std::optional<LockList> most;
  for (const ClusterView& view : *views) {
    const std::vector<Address> masters = servers_in(view.slots, /*with_replicas=*/false);
    co_await list_parts(masters, request, parts);
    LockList list = joined(masters, parts);
    if (!list.missing) co_return list;
    if (!most || list.resources.size() > most->resources.size()) most = std::move(list);
  }
  co_return std::move(*most);
}

asio::awaitable<void> ClusterServer::list_parts(const std::vector<Address>& masters,
                                                const ListRequest& request, ListParts& parts) {
  std::vector<Address> rest;
  std::ranges::copy_if(masters, std::back_inserter(rest),
                       [&parts](const Address& master) { return !parts.of.contains(master); });
  ListProgress total;
  const auto list_one = [&](std::size_t i) -> asio::awaitable<void> {
    ListRequest own = request;
    if (request.progress) {
      own.progress = [&, last = ListProgress()](const ListProgress& progress) mutable {
        total.keys += progress.keys - last.keys;
        if (progress.of && !last.of) total.of = total.of.value_or(0) + *progress.of;
        last = progress;
        request.progress(total);
      };
    }
    if (parts.silent >= max_silent) {
      parts.of.emplace(rest[i], unexpected(Fault{FaultKind::silent, "not asked"}));
      co_return;
    }
    const std::shared_ptr<RedisServer> server = node(rest[i]);
    const Instant late = clock_.now() + request.answer_timeout;
    auto part = co_await server->list(std::move(own));
    if (!part && clock_.now() >= late) ++parts.silent;
    parts.of.emplace(rest[i], std::move(part));
  };
  co_await run_all(executor_, clock_, rest.size(), list_one, max_listing);
}

LockList ClusterServer::joined(const std::vector<Address>& masters, const ListParts& parts) {
  LockList list;
  Fault missing;
  std::size_t number_missing = 0;
  for (const Address& master : masters) {
    const Result<LockList, Fault>& part = parts.of.at(master);
    if (!part) {
      if (++number_missing <= max_named_missing) add_fault(missing, fault_at(master, part.error()));
      continue;
    }
    list.resources.insert(list.resources.end(), part->resources.begin(), part->resources.end());
    if (!list.other_key) list.other_key = part->other_key;
  }
  if (number_missing > max_named_missing) {
    missing.text +=
        "; and " + std::to_string(number_missing - max_named_missing) + " more of its masters";
  }
  if (number_missing > 0) list.missing = std::move(missing);
  return list;
}

asio::awaitable<Result<std::vector<RedisVote::Master>, Fault>> ClusterServer::masters(
    Instant deadline) {
  const auto views = co_await masters_.complete_views(deadline);
  if (!views) co_return unexpected(views.error());
  std::vector<Master> all;
  for (const Address& master : servers_in(views->front().slots, /*with_replicas=*/false)) {
    all.push_back({[this, master] { return node(master); }, escape_for_terminal(master.text())});
  }
  co_return all;
}

asio::awaitable<Result<std::shared_ptr<RedisServer>, Fault>> ClusterServer::master_of(
    std::string key, Instant deadline) {
  const SlotMasters::Refuted none;
  const auto owner = co_await masters_.locate(hash_slot(key), none, deadline);
  if (!owner) co_return unexpected(owner.error());
  co_return node(*owner);
}

asio::awaitable<std::optional<Fault>> ClusterServer::subscribe(
    Resource resource, std::string waiter, std::function<void(Notification)> notified,
    Instant deadline) {
  // PUBLISH counts only clients that are subscribed at the same server (PROTOCOL D1).
  unsubscribe();
  const std::size_t turn = ++subscription_turn_;
  const std::uint16_t slot = hash_slot(resource.key());
  const SlotMasters::Refuted none;
  const auto owner = co_await masters_.locate(slot, none, deadline);
  if (!owner) co_return owner.error();
  if (turn != subscription_turn_) co_return Fault{FaultKind::silent, "the subscription was ended"};
  subscribed_at_ = *owner;
  subscribed_slot_ = slot;
  const std::shared_ptr<RedisServer> server = node(*owner);
  co_return co_await server->subscribe(std::move(resource), std::move(waiter), std::move(notified),
                                       deadline);
}

void ClusterServer::unsubscribe() {
  ++subscription_turn_;
  if (subscribed_at_) node(*std::exchange(subscribed_at_, std::nullopt))->unsubscribe();
}

void ClusterServer::on_disconnect(std::function<void()> notify) {
  disconnected_ = std::move(notify);
  for (const auto& [address, node] : nodes_) node.server->on_disconnect(disconnected_);
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
