#include "store/redis/cluster.hpp"

#include <algorithm>
#include <iterator>

#include "core/helper_keys.hpp"
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

/// The reply has up to 16384 ranges, if the slots were moved one by one. Each range has a master
/// and some replicas, and takes 1.5 KB of memory.
constexpr ReplyLimits slots_limits{4, 16384, 64 * 1024, 32 * 1024 * 1024};

constexpr std::string_view try_again = "TRYAGAIN";

Fault at(const Address& address, Fault fault) {
  fault.text = escape_for_terminal(address.text()) + ": " + fault.text;
  return fault;
}

/// The number of nodes that are asked at a time when views are compared: enough to outvote a few
/// that are dead or cut off, but too few to flood a large cluster during a fail-over.
constexpr std::size_t max_compared = 5;

/// The number of nodes that are asked for another master than the one that failed. If all of them
/// name that one, it is tried again.
constexpr std::size_t enough_compared = 3 * max_compared;

/// Whether the server answers that it cannot serve any key as a master. Then a view that names it
/// as a master may be wrong.
bool is_no_master(const Reply& reply) {
  return reply.type == Reply::Type::error &&
         (reply.text.starts_with("CLUSTERDOWN") || reply.text.starts_with("MASTERDOWN") ||
          reply.text.starts_with("LOADING") || is_read_only(reply.text));
}

Fault no_such_slot() {
  return {FaultKind::unavailable, "no server of its cluster has the slot of this key"};
}

/// The servers that these ranges name, masters and replicas, each once.
std::vector<Address> servers_in(const std::vector<SlotRange>& ranges, bool with_replicas) {
  std::set<Address> known;
  std::vector<Address> in_order;
  const auto add = [&](const Address& address) {
    if (known.insert(address).second) in_order.push_back(address);
  };
  for (const SlotRange& range : ranges) {
    add(range.master);
    if (with_replicas) std::ranges::for_each(range.replicas, add);
  }
  return in_order;
}

}  // namespace

ClusterServer::ClusterServer(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
                             RedisServerOptions options)
    : executor_(std::move(executor)),
      clock_(clock),
      endpoint_(std::move(endpoint)),
      options_(std::move(options)),
      name_(endpoint_.name()),
      sources_(endpoint_.members) {
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
  Refuted refuted;
  for (int redirects = 0;;) {
    // The undo went only to the servers that had been asked before it.
    if (attempt->undone) co_return unexpected(Fault{FaultKind::silent, "cancelled"});
    const std::shared_ptr<RedisServer> server = node(place);
    const auto [reply, link] = co_await server->answer_to(call, asking, deadline);
    if (!reply || is_no_master(*reply)) {
      doubt(place, slot);
      Fault fault = at(place, reply ? fault_of_error(reply->text) : reply.error());
      // It may have received the question, so the question must not go to another server.
      if (!reply && !link->failed_to_open()) co_return unexpected(std::move(fault));
      if (++redirects > max_redirects) co_return unexpected(std::move(fault));
      owner = co_await master_elsewhere(slot, place, refuted, std::move(fault), deadline);
      if (!owner) co_return unexpected(owner.error());
      place = *owner;
      asking = false;
      continue;
    }
    if (reply->type != Reply::Type::error) {
      facts_ = server->facts();
      if (doubt_ && doubt_->slot == slot) doubt_.reset();
      co_return *reply;
    }
    if (is_try_again(reply->text) && may_lack_keys(call)) {
      const auto part = co_await find_part(std::move(call), *owner, deadline);
      if (!part) co_return unexpected(part.error());
      call = part->call;
      place = part->place;
      asking = part->asking;
      continue;
    }
    const auto redirect = redirect_from(reply->text, place);
    if (!redirect) co_return unexpected(at(place, redirect.error()));
    if (!*redirect) co_return unexpected(at(place, fault_of_error(reply->text)));
    if (++redirects > max_redirects) {
      slots_.clear();
      co_return unexpected(
          Fault{FaultKind::unavailable, "its servers disagree on who has this key: more than " +
                                            std::to_string(max_redirects) + " redirects"});
    }
    if (const auto known = refuted.find((*redirect)->to); known != refuted.end())
      co_return unexpected(known->second);
    if (is_loopback((*redirect)->to.host) && !link->stays_on_this_host())
      co_return unexpected(at(place, foreign_loopback((*redirect)->to)));
    place = (*redirect)->to;
    asking = (*redirect)->ask;
    if (asking) continue;
    owner = place;
    std::erase_if(slots_, [slot](const SlotRange& range) {
      return range.first == slot && range.last == slot;
    });
    slots_.insert(slots_.begin(), SlotRange{slot, slot, place, {}});
    drop_misplaced_subscription();
  }
}

asio::awaitable<Result<ClusterServer::Part, Fault>> ClusterServer::find_part(ScriptCall call,
                                                                             Address owner,
                                                                             Instant deadline) {
  // Ask the master that still owns the slot first: only it knows whether it still has the lock's
  // key.
  Part part{owner, /*asking=*/false, std::move(call)};
  for (;;) {
    const std::shared_ptr<RedisServer> server = node(part.place);
    const auto types = co_await server->types_of(part.call.keys, part.asking, deadline);
    if (!types) co_return unexpected(at(part.place, types.error()));
    std::vector<bool> here;
    for (const Reply& type : types->replies)
      here.push_back(type.type == Reply::Type::status && type.text != "none");
    if (here.size() == part.call.keys.size() && here.front()) {
      part.call = with_keys_that_are(here, std::move(part.call));
      co_return part;
    }
    const auto redirect = redirect_from(types->replies.front().text, part.place);
    if (part.asking || !redirect || !*redirect || !(*redirect)->ask) break;
    if (is_loopback((*redirect)->to.host) && !types->link->stays_on_this_host())
      co_return unexpected(at(part.place, foreign_loopback((*redirect)->to)));
    part.place = (*redirect)->to;
    part.asking = true;
  }
  // Neither server has the lock's key. An extend or a release with that key alone shows that the
  // lease is gone. For other scripts, a free lock cannot be distinguished from one that is moving.
  if (part.call.script != &scripts::extend && part.call.script != &scripts::release)
    co_return unexpected(at(owner, fault_of_error(try_again)));
  part.call.keys.resize(1);
  co_return Part{owner, /*asking=*/false, std::move(part.call)};
}

asio::awaitable<Result<Address, Fault>> ClusterServer::locate(std::string key, Instant deadline) {
  const std::uint16_t slot = hash_slot(key);
  if (range_of(slots_, slot) == nullptr) {
    const Refuted none;
    if (auto fault = co_await find_view(slot, none, deadline))
      co_return unexpected(std::move(*fault));
  }
  co_return range_of(slots_, slot)->master;
}

asio::awaitable<std::optional<Fault>> ClusterServer::find_view(std::uint16_t slot,
                                                               const Refuted& refuted,
                                                               Instant deadline) {
  Fault faults;
  std::vector<Address> sources = sources_.in_order();
  // The failed master may be silent, and cannot vouch for itself. Ask it only if it is the only
  // source.
  if (doubt_ && sources.size() > 1) std::erase(sources, doubt_->master);
  const std::size_t at_a_time = doubt_ ? max_compared : 1;
  std::optional<ClusterView> last_resort;
  for (std::size_t begin = 0; begin < sources.size(); begin += at_a_time) {
    if (last_resort && begin >= enough_compared) break;
    const std::size_t end = std::min(begin + at_a_time, sources.size());
    const std::vector<Address> some(sources.begin() + static_cast<std::ptrdiff_t>(begin),
                                    sources.begin() + static_cast<std::ptrdiff_t>(end));
    Views found = co_await ask_for_views(some, /*with_epoch=*/some.size() > 1,
                                         time_for_one(clock_.now(), deadline));
    for (ClusterView& view : newest_first(std::move(found.views))) {
      const SlotRange* range = range_of(view.slots, slot);
      if (range != nullptr && !refuted.contains(range->master)) {
        const bool failed = doubt_ && doubt_->master == range->master;
        if (!failed) {
          use(std::move(view));
          co_return std::nullopt;
        }
        if (!last_resort) last_resort = std::move(view);
        continue;
      }
      if (range == nullptr) add_fault(faults, at(view.from, no_such_slot()));
    }
    if (!found.faults.text.empty()) add_fault(faults, found.faults);
    for (const Address& source : some) sources_.pass_over(source);
  }
  if (last_resort) {
    use(std::move(*last_resort));
    co_return std::nullopt;
  }
  if (faults.text.empty()) faults = no_such_slot();
  co_return faults;
}

asio::awaitable<ClusterServer::Views> ClusterServer::ask_for_views(std::vector<Address> nodes,
                                                                   bool with_epoch,
                                                                   Instant deadline) {
  std::vector<std::optional<Result<ClusterView, Fault>>> answers(nodes.size());
  const auto ask_one = [&](std::size_t i) -> asio::awaitable<void> {
    answers[i] = co_await ask_for_view(nodes[i], with_epoch, deadline);
  };
  co_await run_all(executor_, clock_, nodes.size(), ask_one);

  Views found;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Result<ClusterView, Fault>& answer = *answers[i];
    if (answer) {
      found.views.push_back(std::move(*answer));
    } else {
      add_fault(found.faults, at(nodes[i], answer.error()));
    }
  }
  co_return found;
}

asio::awaitable<Result<ClusterView, Fault>> ClusterServer::ask_for_view(Address from,
                                                                        bool with_epoch,
                                                                        Instant deadline) {
  const std::shared_ptr<RedisServer> server = node(from);
  Command question{"CLUSTER", "SLOTS"};
  const auto [reply, link] =
      co_await server->answer_to(std::move(question), slots_limits, deadline);
  if (!reply) co_return unexpected(reply.error());
  auto slots = slots_from(*reply, from);
  if (!slots) co_return unexpected(slots.error());
  if (!link->stays_on_this_host()) {
    for (SlotRange& range : *slots) {
      if (is_loopback(range.master.host)) co_return unexpected(foreign_loopback(range.master));
      std::erase_if(range.replicas, [](const Address& one) { return is_loopback(one.host); });
    }
  }
  ClusterView view{from, std::move(*slots), std::nullopt};
  if (with_epoch) {
    Command info{"CLUSTER", "INFO"};
    const auto answer = co_await server->ask(std::move(info), ReplyLimits{}, deadline);
    if (!answer) co_return unexpected(answer.error());
    view.epoch = epoch_from(*answer);
  }
  co_return view;
}

asio::awaitable<Result<std::vector<ClusterView>, Fault>> ClusterServer::complete_views(
    Instant deadline) {
  const std::vector<Address> asked = sources_.in_order();
  Views found =
      co_await ask_for_views(asked, /*with_epoch=*/true, time_for_one(clock_.now(), deadline));
  // If only a few nodes of the cluster are configured, those that the newest view names may have
  // newer views.
  found.views = newest_first(std::move(found.views));
  const auto named = std::ranges::find_if(
      found.views, [](const ClusterView& view) { return view.missing_slots() == 0; });
  if (named != found.views.end()) {
    std::vector<Address> others = servers_in(named->slots, /*with_replicas=*/false);
    std::erase_if(others,
                  [&](const Address& one) { return std::ranges::find(asked, one) != asked.end(); });
    others.resize(std::min(others.size(), enough_compared));
    Views more =
        co_await ask_for_views(others, /*with_epoch=*/true, time_for_one(clock_.now(), deadline));
    std::ranges::move(more.views, std::back_inserter(found.views));
  }
  std::vector<ClusterView> complete;
  for (ClusterView& view : newest_of(newest_first(std::move(found.views)))) {
    const std::size_t missing = view.missing_slots();
    if (missing == 0) {
      complete.push_back(std::move(view));
    } else {
      add_fault(found.faults,
                at(view.from, {FaultKind::unavailable,
                               "no server of its cluster has " + std::to_string(missing) +
                                   " of the 16384 slots, so locks in them are not seen"}));
    }
  }
  if (complete.empty()) co_return unexpected(std::move(found.faults));
  use(complete.front());
  co_return complete;
}

void ClusterServer::use(ClusterView view) {
  sources_.prefer(view.from);
  sources_.learn(servers_in(view.slots, /*with_replicas=*/true));
  slots_ = std::move(view.slots);
  source_ = std::move(view.from);
  drop_misplaced_subscription();
}

void ClusterServer::drop_misplaced_subscription() {
  if (!subscribed_at_) return;
  const SlotRange* range = range_of(slots_, subscribed_slot_);
  if (range != nullptr && range->master != *subscribed_at_)
    node(*subscribed_at_)->drop_subscription();
}

void ClusterServer::doubt(const Address& master, std::uint16_t slot) {
  // The question may be old, and the view that led to it replaced. Then its failure does not
  // discredit the new view.
  const SlotRange* range = range_of(slots_, slot);
  if (range != nullptr && range->master != master) return;
  doubt_ = Doubt{master, slot};
  if (range == nullptr) return;
  sources_.pass_over(source_);
  slots_.clear();
}

asio::awaitable<Result<Address, Fault>> ClusterServer::master_elsewhere(
    std::uint16_t slot, Address place, Refuted& refuted, Fault fault, Instant deadline) {
  refuted.insert_or_assign(std::move(place), fault);
  const SlotRange* range = range_of(slots_, slot);
  if (range != nullptr && !refuted.contains(range->master)) co_return range->master;
  // The result needs a name: GCC 12 miscompiles the shorter form (CONTRIBUTING.md, Style).
  const auto no_view = co_await find_view(slot, refuted, deadline);
  if (no_view) co_return unexpected(std::move(fault));
  co_return range_of(slots_, slot)->master;
}

std::shared_ptr<RedisServer> ClusterServer::node(const Address& address) {
  Node& node = nodes_[address];
  node.last_asked = ++questions_;
  if (node.server) return node.server;
  auto server =
      std::make_shared<RedisServer>(executor_, clock_, endpoint_.server_at(address), options_);
  server->on_disconnect(disconnected_);
  node.server = server;
  drop_stale_nodes();
  return server;
}

void ClusterServer::drop_stale_nodes() {
  if (nodes_.size() <= max_stale_nodes) return;
  const std::vector<Address> sources = sources_.in_order();
  std::set<Address> named(sources.begin(), sources.end());
  for (const SlotRange& range : slots_) named.insert(range.master);
  if (subscribed_at_) named.insert(*subscribed_at_);
  std::vector<std::pair<std::uint64_t, Address>> stale;
  for (const auto& [address, node] : nodes_) {
    if (!named.contains(address)) stale.emplace_back(node.last_asked, address);
  }
  if (stale.size() <= max_stale_nodes) return;
  std::ranges::sort(stale);
  stale.resize(stale.size() - max_stale_nodes);
  for (const auto& [last_asked, address] : stale) {
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
  const auto views = co_await complete_views(clock_.now() + request.answer_timeout);
  if (!views) co_return unexpected(views.error());
  Fault faults;
  for (const ClusterView& view : *views) {
    Result<LockList, Fault> list = co_await list_from(view, request);
    if (list) co_return list;
    if (faults.text.find(list.error().text) == std::string::npos) add_fault(faults, list.error());
  }
  co_return unexpected(std::move(faults));
}

asio::awaitable<Result<LockList, Fault>> ClusterServer::list_from(const ClusterView& view,
                                                                  const ListRequest& request) {
  LockList list;
  for (const Address& master : servers_in(view.slots, /*with_replicas=*/false)) {
    const std::shared_ptr<RedisServer> server = node(master);
    const auto part = co_await server->list(request);
    if (!part) co_return unexpected(at(master, part.error()));
    list.resources.insert(list.resources.end(), part->resources.begin(), part->resources.end());
    if (!list.other_key) list.other_key = part->other_key;
  }
  co_return list;
}

asio::awaitable<Result<std::vector<RedisVote::Master>, Fault>> ClusterServer::masters(
    Instant deadline) {
  const auto views = co_await complete_views(deadline);
  if (!views) co_return unexpected(views.error());
  std::vector<Master> all;
  for (const Address& master : servers_in(views->front().slots, /*with_replicas=*/false)) {
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
  subscribed_slot_ = hash_slot(resource.key());
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
