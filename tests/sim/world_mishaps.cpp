// The mishaps of a world.
#include "world.hpp"

#include <algorithm>

#include "core/helper_keys.hpp"
#include "engine/dismissal.hpp"
#include "engine/inspect.hpp"
#include "store/local/commands.hpp"
#include "support/digest.hpp"
#include "virtual/cluster_nodes.hpp"

namespace redlock::sim {
namespace {

/// No lease ever has this fence: as milliseconds, it is some 70,000 years away.
constexpr Fence unused_fence{std::uint64_t{1} << 51};

/// Above 2^52, so it is not a fence.
const std::string unusable_counter = "9007199254740993";
constexpr Milliseconds planted_life = std::chrono::hours(30 * 24);

/// The id of a waiter of a later version, and how long its queues live.
const std::string newer_waiter = "00000000.newer";
constexpr Milliseconds queue_life{35'000};

/// A foreign client allows for the same clock drift as we do.
Duration foreign_validity(Duration ttl) {
  return ttl - ttl / 100 - Milliseconds(2);
}

/// The first member of a sorted set; empty if there is none.
std::string first_of(Server& server, const std::string& key) {
  const local::Entry* entry = server.keyspace().find(key);
  const auto* set = entry != nullptr ? std::get_if<local::SortedSet>(&entry->value) : nullptr;
  return set != nullptr ? set->ranking().begin()->second : std::string();
}

void run_at(Server& server, const std::vector<std::string>& command) {
  local::execute(server.keyspace(), local::views_of(command));
}

}  // namespace

void World::plan_mishaps() {
  for (const Mishap& mishap : schedule_.mishaps) {
    const Duration end = mishap.at + mishap.span;
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      for (std::size_t server = 0; server < servers_.size(); ++server) {
        const bool this_host = host == mishap.host;
        const bool this_server = server == mishap.server;
        if ((mishap.kind == Mishap::Kind::outage && this_host && this_server) ||
            (mishap.kind == Mishap::Kind::isolate_host && this_host) ||
            (mishap.kind == Mishap::Kind::isolate_server && this_server)) {
          path(host, server).go_out(mishap.at, end);
        }
      }
    }
    timeline_.at(mishap.at, [this, &mishap] { apply(mishap); });
  }
}

void World::apply(const Mishap& mishap) {
  history_.add("{}", describe(mishap));
  Server& server = servers_[mishap.server];
  Host& host = hosts_[mishap.host];
  switch (mishap.kind) {
    case Mishap::Kind::wipe:
      referees_.each([](Referee& referee) { referee.lost_data(); });
      [[fallthrough]];
    case Mishap::Kind::crash:
      if (server.listens()) server.crash(mishap.kind == Mishap::Kind::wipe);
      in(mishap.span, [this, &server] {
        if (server.listens()) return;
        history_.add("s{} is up again", server.number() + 1);
        server.restart();
      });
      return;
    case Mishap::Kind::freeze:
      if (!server.answers()) return;
      server.freeze();
      in(mishap.span, [this, &server] {
        if (!server.frozen()) return;
        history_.add("s{} goes on", server.number() + 1);
        server.thaw();
      });
      return;
    case Mishap::Kind::outage:
    case Mishap::Kind::isolate_host:
    case Mishap::Kind::isolate_server:
      return;  // the paths have recorded it
    case Mishap::Kind::cut:
      server.cut_one(/*delivers=*/mishap.flag);
      return;
    case Mishap::Kind::flush_scripts:
      server.flush_scripts();
      referees_.each([&server](Referee& referee) { referee.lose_scripts(server); });
      return;
    case Mishap::Kind::pause:
      if (host.paused()) return;
      host.pause();
      in(mishap.span, [this, &host] {
        history_.add("host {} goes on", host.number() + 1);
        host.go_on();
      });
      return;
    case Mishap::Kind::step_client_wall:
      host.step_wall(mishap.step);
      return;
    case Mishap::Kind::step_server_wall:
      // The clocks of a vote's nodes agree.
      for (Server& each : servers_) {
        if (each.vote() == server.vote()) each.step_wall(mishap.step);
      }
      return;
    case Mishap::Kind::break_lock:
      start([this, mishap] { return break_by_force(mishap); });
      return;
    case Mishap::Kind::foreign:
    case Mishap::Kind::foreign_for_ever:
      foreign_lock(mishap);
      return;
    case Mishap::Kind::refuse:
      server.refuse(mishap.refusal);
      if (mishap.refusal == Refusal::no_rights)
        referees_.each([&server](Referee& referee) { referee.lose_rights(server); });
      in(mishap.span, [&server] { server.refuse(Refusal::none); });
      return;
    case Mishap::Kind::power_loss:
      for (Server& each : servers_) each.lose_power();
      return;
    case Mishap::Kind::cut_subscriptions:
      for (Server& each : servers_) each.cut_subscriptions(host);
      return;
    case Mishap::Kind::lose_marker:
      for (Server& each : servers_) referee_.lose_marker(each);
      return;
    case Mishap::Kind::inspect:
      start([this, mishap] { return inspect_lock(mishap); });
      return;
    case Mishap::Kind::ask:
      start([this, mishap] { return ask_holder(mishap); });
      return;
    case Mishap::Kind::dismiss:
      start([this, mishap] { return dismiss(mishap); });
      return;
    case Mishap::Kind::evict:
      server.keyspace().erase(resource_.key());
      return;
    case Mishap::Kind::move_address:
      move_address(mishap.server, mishap.other);
      in(mishap.span, [this, &mishap] { move_address(mishap.server, mishap.server); });
      return;
    case Mishap::Kind::spoil_counter:
      spoil_counter(server, mishap.span);
      return;
    case Mishap::Kind::lose_slots:
      server.keyspace().erase(HelperKeys(resource_).slots());
      return;
    case Mishap::Kind::lose_record:
      server.keyspace().erase(HelperKeys(resource_).owner());
      return;
    case Mishap::Kind::deny_command:
      server.deny(mishap.command);
      in(mishap.span, [&server] { server.deny(""); });
      return;
    case Mishap::Kind::spoil_key:
      spoil_key(server, spoilings[mishap.spoiling]);
      return;
    case Mishap::Kind::newer_waiter:
      queue_newer_waiter(mishap.span);
      return;
    case Mishap::Kind::move_slot:
      static_cast<ClusterNodes&>(*nodes_[mishap.server]).move_slot(mishap.span);
      return;
    case Mishap::Kind::stall_slot:
      static_cast<ClusterNodes&>(*nodes_[mishap.server]).stall_slot(mishap.span);
      return;
    case Mishap::Kind::fail_over:
      nodes_[mishap.server]->fail_over(mishap.span, /*crashes=*/mishap.flag);
      return;
  }
}

void World::move_address(std::size_t address, std::size_t to) {
  history_.add("the address of s{} leads to s{}", address + 1, to + 1);
  referees_.each([&](Referee& referee) { referee.move_address(servers_[address], servers_[to]); });
  servers_[leads_to_[address]].cut_all();
  leads_to_[address] = to;
}

void World::spoil_counter(Server& server, Duration span) {
  const std::string key = HelperKeys(resource_).fence();
  const local::Entry* found = server.keyspace().find(key);
  if (found == nullptr) return;
  const std::string saved = std::get<std::string>(found->value);
  run_at(server, {"SET", key, unusable_counter, "PX", std::to_string(planted_life.count())});
  in(span, [&server, key, saved] {
    const local::Entry* entry = server.keyspace().find(key);
    if (entry == nullptr || std::get<std::string>(entry->value) != unusable_counter) return;
    run_at(server, {"SET", key, saved, "PX", std::to_string(planted_life.count())});
  });
}

void World::spoil_key(Server& server, const Spoiling& spoiling) {
  const HelperKeys keys(resource_);
  const std::string key = keys.all().at(spoiling.key - protocol::key::lock - 1);
  const local::Entry* lock = server.keyspace().find(resource_.key());
  const auto* token = lock != nullptr ? std::get_if<std::string>(&lock->value) : nullptr;
  const std::pair<std::string_view, std::string> names[] = {
      {"LEASE", token != nullptr ? sha1_hex(*token) : ""},
      {"READER", first_of(server, keys.readers())},
      {"WAITER", first_of(server, keys.queue())}};
  if (spoiling.replaces) server.keyspace().erase(key);
  std::vector<std::string> command{std::string(spoiling.command), key};
  for (std::string word : spoiling.words) {
    for (const auto& [name, id] : names) {
      if (const auto place = word.find(name); place != std::string::npos)
        word.replace(place, name.size(), id);
    }
    command.push_back(std::move(word));
  }
  run_at(server, command);
}

void World::queue_newer_waiter(Duration span) {
  const HelperKeys keys(resource_);
  const auto life = std::chrono::duration_cast<Milliseconds>(span);
  std::vector<Milliseconds> all_ends;
  for (Server& server : servers_) {
    const Milliseconds ends = server.wall() + life;
    all_ends.push_back(ends);
    run_at(server, {"ZADD", keys.queue(), "1", newer_waiter});
    run_at(server, {"HSET", keys.waiters(), newer_waiter,
                    fmt::format("exclusive subscribed {} and what else it has", ends.count())});
    for (const std::string& key : {keys.queue(), keys.waiters()}) {
      run_at(server, {"PEXPIRE", key, std::to_string(queue_life.count())});
    }
    referee_.keeps_out_until(server.true_time(server.wall() + life + Milliseconds(1)));
  }
  in(span * 9 / 10, [this, all_ends] { check_newer_waiter(all_ends); });
}

/// A short life in whole milliseconds may end before nine tenths of it have passed.
void World::check_newer_waiter(const std::vector<Milliseconds>& ends) {
  const auto forgets = [](const Mishap& mishap) { return mishap.kind == Mishap::Kind::wipe; };
  if (std::ranges::any_of(schedule_.mishaps, forgets)) return;
  for (Server& server : servers_) {
    const local::Entry* queue = server.keyspace().find(HelperKeys(resource_).queue());
    if (queue != nullptr && std::get<local::SortedSet>(queue->value).score(newer_waiter)) continue;
    if (ends[server.number()] <= server.wall()) continue;
    referee_.violate("queue",
                     fmt::format("s{} dropped a waiter of a newer version", server.number() + 1));
  }
}

asio::awaitable<void> World::inspect_lock(Mishap mishap) {
  Process& process = new_process(mishap.host, "inspector");
  const std::shared_ptr<ServerSet> server_set = new_server_set(process, Milliseconds(50));
  const Duration began = timeline_.now();
  referee_.inspected(summarize(co_await redlock::inspect(*server_set, resource_)), began);
  finished(process);
  co_await server_set->close(CloseMode::immediate);
  process.end();
}

asio::awaitable<void> World::ask_holder(Mishap mishap) {
  Process& process = new_process(mishap.host, "asker");
  const std::shared_ptr<ServerSet> server_set = new_server_set(process, Milliseconds(50));
  const AskRequest look{resource_};
  const Inspection found = summarize(co_await ask_to_stop(*server_set, look));
  if (found.state == InspectState::held && !found.holder->foreign && !found.holder->shared) {
    co_await sleep_until(process, process.now() + mishap.span);
    const LeaseId id = found.holder->id;
    // The reason tells the referee for which lease it is.
    const AskRequest request{resource_, id, std::nullopt, {"", "", id.text}};
    const Duration began = timeline_.now();
    const auto votes = co_await ask_to_stop(*server_set, request);
    referee_.asked(id, is_gone(votes, id), began);
  }
  finished(process);
  co_await server_set->close(CloseMode::immediate);
  process.end();
}

asio::awaitable<void> World::dismiss(Mishap mishap) {
  Process& process = new_process(mishap.host, "dismisser");
  const std::shared_ptr<ServerSet> server_set = new_server_set(process, Milliseconds(50));
  const StopRequest by;
  (void)co_await dismiss_waiters(*server_set, resource_, by);
  finished(process);
  co_await server_set->close(CloseMode::immediate);
  process.end();
}

asio::awaitable<void> World::break_by_force(Mishap mishap) {
  Process& process = new_process(mishap.host, "breaker");
  const std::shared_ptr<ServerSet> server_set = new_server_set(process, Milliseconds(50));
  std::optional<Fence> only_if;
  if (mishap.flag) only_if = unused_fence;
  const BreakRequest request{resource_, only_if};
  (void)co_await break_lock(*server_set, request);
  finished(process);
  co_await server_set->close(CloseMode::immediate);
}

void World::foreign_lock(const Mishap& mishap) {
  const bool for_ever = mishap.kind == Mishap::Kind::foreign_for_ever;
  const std::string value = fmt::format("f{:03}-another-library", ++foreign_clients_);
  const auto ttl = std::max(Milliseconds(1), std::chrono::duration_cast<Milliseconds>(mishap.span));
  std::size_t votes = 0;
  for (std::size_t vote = 0; vote < schedule_.servers; ++vote) {
    Server& server = place_of_lock(vote);
    if (!server.answers() || server.keyspace().find(resource_.key()) != nullptr) continue;
    ++votes;
    std::vector<std::string> command{"SET", resource_.key(), value, "NX"};
    if (!for_ever) command.insert(command.end(), {"PX", std::to_string(ttl.count())});
    if (for_ever && mishap.flag) command = {"HSET", resource_.key(), value, "1"};
    local::execute(server.keyspace(), local::views_of(command));
  }
  const auto release = [this, value] {
    for (Server& server : servers_) {
      const local::Entry* entry = server.keyspace().find(resource_.key());
      if (entry == nullptr) continue;
      const auto* text = std::get_if<std::string>(&entry->value);
      if (text != nullptr ? *text == value
                          : std::get<local::Hash>(entry->value).front().first == value)
        server.keyspace().erase(resource_.key());
    }
  };
  if (votes < majority(schedule_.servers)) return release();
  const Duration until = timeline_.now() + (for_ever ? mishap.span : foreign_validity(ttl));
  if (until <= timeline_.now()) return release();
  referee_.foreign_granted(value, until);
  const bool dies = !for_ever && mishap.flag;
  if (dies) return;
  timeline_.at(until, [this, value, release] {
    referee_.foreign_ended(value);
    release();
  });
}

void World::calm_down() {
  history_.add("all is calm from now on");
  for (Path& path : paths_) path.calm_down();
  for (Server& server : servers_) {
    if (!server.listens()) server.restart();
    if (server.frozen()) server.thaw();
    server.refuse(Refusal::none);
    server.deny("");
  }
  for (Host& host : hosts_) host.go_on();
}

}  // namespace redlock::sim
