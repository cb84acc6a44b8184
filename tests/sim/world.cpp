#include "world.hpp"

#include <algorithm>

#include "core/helper_keys.hpp"
#include "store/redis/cluster.hpp"
#include "virtual/cluster_nodes.hpp"
#include "virtual/sentinel_nodes.hpp"
#include "witness.hpp"

namespace redlock::sim {
namespace {

/// More than any schedule needs: one that reaches this limit loops.
constexpr std::size_t max_events = 300'000;

/// More than the busiest of 60,000 schedules runs: 1,617 in a queue with many readers, else less
/// than 1,500.
constexpr std::size_t max_scripts = 1500;
constexpr std::size_t max_scripts_of_queue = 2000;

/// How long a writer that was killed while it waited delays readers.
constexpr Milliseconds dead_writer{2000};

/// After the last session: for messages in flight and background work.
constexpr Milliseconds settling_delay{8000};

/// In the order in which a session that wants several of them acquires them.
std::vector<Resource> the_resources(std::size_t number) {
  std::vector<Resource> resources{Resource::from("deploy").value()};
  if (number > 1) resources.push_back(Resource::from("migrate").value());
  return resources;
}

}  // namespace

World::World(const Profile& profile, std::uint64_t seed, bool with_history, local::LuaHost& lua)
    : schedule_(draw(profile, seed)),
      random_(seed ^ 0x5eed),
      history_(timeline_, with_history),
      resources_(the_resources(schedule_.keys)),
      resource_(resources_.front()),
      referees_(timeline_, history_, resources_, majority(schedule_.configured.size()),
                profile.judged),
      referee_(referees_.first()),
      nights_(schedule_) {
  history_.add("{}", describe(schedule_));
  add_servers(lua);
  for (const MachinePlan& plan : schedule_.hosts) {
    history_.add("host {}: rate {:+} ppm, wall clock {:+} ms", hosts_.size() + 1, plan.ppm,
                 plan.wall_offset.count());
    hosts_.emplace_back(timeline_, *this, hosts_.size(), Oscillator(plan.clock_origin, plan.ppm),
                        plan.wall_offset);
  }
  if (schedule_.monitored) history_.add("a monitor subscribes to all channels");
  for (const std::size_t host : schedule_.hosts_without_publish) {
    history_.add("host {} may not publish", host + 1);
    hosts_[host].may_publish = false;
  }
  for (const std::size_t host : schedule_.hosts_without_subscribe) {
    history_.add("host {} may not subscribe", host + 1);
    hosts_[host].may_subscribe = false;
  }
  for (const PathPlan& plan : schedule_.paths)
    paths_.emplace_back(plan.delay, plan.jitter, plan.stragglers, Random(random_.bits()));
}

void World::add_servers(local::LuaHost& lua) {
  for (const MachinePlan& plan : schedule_.server_plans) {
    history_.add("s{}: rate {:+} ppm, wall clock {:+} ms", servers_.size() + 1, plan.ppm,
                 plan.wall_offset.count());
    servers_.emplace_back(timeline_, lua, servers_.size(), Oscillator(plan.clock_origin, plan.ppm),
                          plan.wall_offset, Random(random_.bits()));
    servers_.back().watcher = &referees_;
    referees_.each([this](Referee& referee) { referee.add(servers_.back()); });
    leads_to_.push_back(leads_to_.size());
    servers_.back().monitor(schedule_.monitored);
  }
  nodes_.resize(schedule_.servers);
  for (const NodesPlan& plan : schedule_.nodes) nodes_[plan.vote()] = make_nodes(plan);
}

std::unique_ptr<Nodes> World::make_nodes(const NodesPlan& plan) {
  const auto those = [this](const std::vector<std::size_t>& numbers) {
    std::vector<Server*> servers;
    for (const std::size_t number : numbers) servers.push_back(&servers_[number]);
    return servers;
  };
  const std::vector<Server*> members = those(plan.nodes);
  const std::vector<Server*> sentinels = those(plan.sentinels);
  const Random random(random_.bits());
  std::unique_ptr<Nodes> nodes;
  if (plan.kind == VoteKind::cluster) {
    using Version = ClusterNodes::Version;
    nodes = std::make_unique<ClusterNodes>(timeline_, members, hash_slot(resource_.key()),
                                           plan.is_old ? Version::redis6 : Version::redis7, random);
  } else {
    nodes = std::make_unique<SentinelNodes>(timeline_, members, sentinels, random);
  }
  for (const auto& some : {members, sentinels}) {
    for (Server* server : some) server->join(*nodes, plan.vote());
  }
  history_.add("{}", describe(plan));
  return nodes;
}

redis::Endpoint World::endpoint_of(std::size_t vote) const {
  redis::Endpoint endpoint;
  const NodesPlan* const plan = schedule_.nodes_of(vote);
  if (plan == nullptr) {
    const redis::Address address = address_of(servers_[vote]);
    endpoint.host = address.host;
    endpoint.port = address.port;
    return endpoint;
  }
  const bool is_cluster = plan->kind == VoteKind::cluster;
  endpoint.kind = is_cluster ? redis::Endpoint::Kind::cluster : redis::Endpoint::Kind::sentinel;
  endpoint.master = "locks";
  for (const std::size_t number : is_cluster ? plan->nodes : plan->sentinels)
    endpoint.members.push_back(address_of(servers_[number]));
  return endpoint;
}

Server& World::place_of_lock(std::size_t vote) {
  return nodes_[vote] ? nodes_[vote]->place_of(resource_.key()) : servers_[vote];
}

World::~World() {
  for (Host& host : hosts_) host.go_on();
  timeline_.clear();
}

Process& World::new_process(std::size_t host, std::string name) {
  return processes_.emplace_back(hosts_[host], std::move(name));
}

std::string World::name_of_host(std::size_t host) const {
  return schedule_.has_host_names ? "h" + std::to_string(host + 1) : "h";
}

std::shared_ptr<ServerSet> World::new_server_set(Process& process, Duration server_timeout) {
  std::vector<std::unique_ptr<LockServer>> servers;
  for (const std::size_t server : schedule_.configured) {
    redis::RedisServerOptions options;
    options.identifies_itself = schedule_.identifies_itself && schedule_.configured.size() > 1;
    auto product = redis::make_server(timeline_.executor(), process, endpoint_of(server), options);
    servers.push_back(
        std::make_unique<Witness>(std::move(product), referees_, process, servers.size()));
  }
  RandomBits random = [random = Random(random_.bits())]() mutable { return random.bits(); };
  return server_sets_.emplace_back(
      std::make_shared<ServerSet>(timeline_.executor(), process, std::move(random),
                                  std::move(servers), server_timeout, schedule_.restart_guard));
}

std::shared_ptr<Wire> World::dial(Process& process, std::size_t port) {
  const std::size_t there = leads_to_[port - 1];
  return std::make_shared<Wire>(process, servers_[there], path(process.host().number(), there));
}

std::optional<Violation> World::run() {
  plan_sessions();
  plan_mishaps();
  timeline_.at(schedule_.calm, [this] { calm_down(); });
  const auto timeout = static_cast<int>(sessions_.size() + 2);
  const Duration end = std::max(schedule_.calm, schedule_.progress_from) +
                       schedule_.bound * timeout + schedule_.work();
  const bool nightly = schedule_.shape == Schedule::Shape::nightly;
  const std::size_t scale = nightly ? sessions_.size() : 1;
  const std::size_t max_allowed =
      scale * (schedule_.shape == Schedule::Shape::queue ? max_scripts_of_queue : max_scripts);
  std::size_t events = 0;
  std::optional<Duration> over_since;
  while (!referees_.any_violation() && timeline_.step()) {
    if (++events > scale * max_events) referee_.violate("progress", "the schedule runs in circles");
    if (referees_.scripts() > max_allowed)
      referee_.violate("load", "processes send scripts without end");
    if (!over_since && all_over() && timeline_.now() > schedule_.calm) over_since = timeline_.now();
    if (over_since && timeline_.now() > *over_since + settling_delay) break;
    if (timeline_.now() > end) break;
  }
  if (!referees_.any_violation()) {
    check_outcome();
    check_leftovers();
  }
  return referees_.violation();
}

void World::plan_sessions() {
  for (const SessionPlan& plan : schedule_.sessions) {
    Session& session =
        sessions_.emplace_back(*this, plan, fmt::format("c{}", sessions_.size() + 1));
    timeline_.at(plan.start, [this, &session] { start([&session] { return session.live(); }); });
    if (!plan.dies_at) continue;
    timeline_.at(*plan.dies_at, [this, &session] { kill(session); });
  }
}

void World::kill(Session& session) {
  const bool keeps_waiting =
      session.waiting() && referee_.kept_out_until(session.plan().mode, session.process()) >
                               timeline_.now() + hang_up_delay;
  // The waiters behind it may have been told to leave the lock to it.
  if (!session.over() && !keeps_waiting) schedule_.bound += standby_delay;
  // Readers behind it learn only by polling that no writer keeps them out any more.
  const bool keeps_readers = session.waiting() && !session.plan().mode.shared;
  const auto reads = [](const Session& other) { return other.plan().mode.shared; };
  if (keeps_readers && std::ranges::any_of(sessions_, reads)) schedule_.bound += dead_writer;
  // If it cannot subscribe, they may notice its death only when its entry ends.
  if (!hosts_[session.plan().host].may_subscribe) {
    session.keeps_others_until(timeline_.now() + polling_entry_ttl + hang_up_delay);
  }
  session.kill();
}

bool World::all_over() const {
  return std::all_of(sessions_.begin(), sessions_.end(),
                     [](const Session& session) { return session.over(); });
}

void World::note_grant(const Session& session) {
  if (schedule_.shape != Schedule::Shape::queue) return check_progress(session);
  check_order(session);
  check_delay(session);
}

void World::recorded(const Session& session, Duration started) {
  history_.add("{} succeeded, and a quorum recorded it", session.name());
  if (std::string text = nights_.recorded(started); !text.empty())
    referee_.violate("once", session.name() + ": " + text);
}

void World::left_out(const Session& session) {
  history_.add("{} need not run", session.name());
  if (std::string text = nights_.left_out(timeline_.now()); !text.empty())
    referee_.violate("fresh", session.name() + ": " + text);
}

void World::note_giving_up(const Session& session) {
  if (schedule_.shape != Schedule::Shape::queue) return;
  check_full(session);
  if (is_first(session)) check_delay(session);
  // The waiter that is first now and may not enter yet is told to poll later.
  for (Session& other : sessions_) {
    if (!other.waiting() ||
        referee_.kept_out_until(other.plan().mode, other.process()) <= timeline_.now())
      continue;
    other.stands_by_until(timeline_.now() + standby_delay);
  }
}

void World::add_to(Totals& totals) const {
  ++totals.schedules;
  totals.grants += referees_.grants();
  totals.scripts += referees_.scripts();
  for (std::size_t i = 0; i < failures_.size(); ++i) totals.failures_by_why[i] += failures_[i];
  totals.virtual_time += timeline_.now();
}

}  // namespace redlock::sim
