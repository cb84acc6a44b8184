#include "world.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

#include "core/helper_keys.hpp"
#include "store/local/lua_host.hpp"
#include "store/owner_record.hpp"
#include "store/redis/redis_server.hpp"
#include "support/digest.hpp"

namespace redlock::unit {
namespace {

/// More than any test needs: a test that gets here runs in circles.
constexpr std::size_t max_events = 5'000'000;

/// What all clocks show when the world begins.
constexpr std::chrono::seconds clock_origin{1000};

RandomBits seeded(std::uint64_t seed) {
  return [engine = std::mt19937_64(seed)]() mutable {
    return engine();
  };  // NOLINT: reproducible on purpose
}

/// Keeps the compiled scripts from one world to the next.
local::LuaHost& lua() {
  static local::LuaHost host;
  return host;
}

/// The product's servers. Of their addresses the world knows the port only: Client::leads_to.
std::vector<std::unique_ptr<LockServer>> connect(sim::Process& process,
                                                 const ClientOptions& options, std::size_t number,
                                                 std::vector<AskedServer*>& servers) {
  redis::RedisServerOptions redis_options;
  redis_options.identifies_itself =
      options.identifies_itself || options.restart_guard > Duration::zero();
  std::vector<std::unique_ptr<LockServer>> owned;
  for (std::size_t i = 0; i < number; ++i) {
    redis::Endpoint endpoint;
    endpoint.host = "s" + std::to_string(i);
    endpoint.port = static_cast<std::uint16_t>(i);
    auto product = std::make_unique<redis::RedisServer>(process.timeline().executor(), process,
                                                        std::move(endpoint), redis_options);
    auto server = std::make_unique<AskedServer>(std::move(product), process);
    servers.push_back(server.get());
    owned.push_back(std::move(server));
  }
  return owned;
}

}  // namespace

LeaseId id_of(const std::string& value) {
  return {sha1_hex(value)};
}

Reply Store::execute(const std::vector<std::string>& command) {
  return local::execute(server_.keyspace(), local::views_of(command));
}

Instant Store::instant_of(Milliseconds wall) const {
  return observer_.now() + (server_.true_time(wall) - observer_.timeline().now());
}

std::optional<Store::Lock> Store::lock(const Resource& resource) {
  const Reply value = execute({"GET", resource.key()});
  if (value.type != Reply::Type::text) return std::nullopt;
  Lock lock;
  lock.value = value.text;
  const local::Entry* entry = server_.keyspace().find(resource.key());
  if (entry->expires) lock.expires = instant_of(*entry->expires);
  const Reply owner = execute(
      {"HMGET", HelperKeys(resource).owner(), "lease", "fence", "since", "supervised", "record"});
  lock.foreign = owner.elements[0].text != id_of(value.text).text;
  if (lock.foreign) return lock;
  lock.fence = Fence::from_text(owner.elements[1].text).value_or(Fence());
  lock.since = instant_of(Milliseconds(std::stoll(owner.elements[2].text)));
  lock.owner = decode_owner(owner.elements[4].text).value_or(Owner{});
  lock.owner.supervised = owner.elements[3].text == "1";
  return lock;
}

std::uint64_t Store::counter(const Resource& resource) {
  const Reply stored = execute({"GET", HelperKeys(resource).fence()});
  return stored.type == Reply::Type::text ? std::stoull(stored.text) : 0;
}

void Store::set_counter(const Resource& resource, std::uint64_t value) {
  execute({"SET", HelperKeys(resource).fence(), std::to_string(value)});
}

std::vector<std::string> Store::waiting(const Resource& resource) {
  const HelperKeys helper(resource);
  std::vector<std::string> names;
  for (const Reply& id : execute({"ZRANGE", helper.queue(), "0", "-1"}).elements) {
    const std::string entry = execute({"HGET", helper.waiters(), id.text}).text;
    const auto owner = decode_owner(entry.substr(std::min(entry.find('{'), entry.size())));
    names.push_back(owner ? owner->command : "");
  }
  return names;
}

void Store::hold_foreign(const Resource& resource, const std::string& value,
                         std::optional<Duration> remaining) {
  std::vector<std::string> set{"SET", resource.key(), value};
  if (remaining) {
    const auto life = std::chrono::ceil<Milliseconds>(*remaining);
    set.insert(set.end(), {"PX", std::to_string(life.count())});
  }
  execute(set);
  forget_owner(resource);
}

void Store::forget_owner(const Resource& resource) {
  execute({"DEL", HelperKeys(resource).owner()});
}

void Store::change_owner(const Resource& resource, const Owner& owner) {
  execute({"HSET", HelperKeys(resource).owner(), "record", encode_owner(owner)});
}

Client::Client(sim::Timeline& timeline, sim::Network& network, std::size_t number,
               const ClientOptions& options)
    : host(timeline, network, number, sim::Oscillator(clock_origin, 0), Milliseconds(0)),
      process(host, "client " + std::to_string(number)),
      leads_to(options.servers),
      server_set(timeline.executor(), process, seeded(options.seed),
                 connect(process, options, leads_to.size(), servers), options.timeout,
                 options.restart_guard) {}

void Client::every_server(const Fate& fate) const {
  for (AskedServer* server : servers) server->fate = fate;
}

void Client::stop_for(Duration span) {
  stop();
  host.timeline().in(span, [this] { go_on(); });
}

void Client::set_wall_offset(Milliseconds offset) {
  host.step_wall(offset - std::exchange(wall_offset_, offset));
}

World::World(std::size_t servers, const std::vector<std::int64_t>& ppm)
    : path_(Duration::zero(), Duration::zero(), 0, sim::Random(0)),
      observers_host_(timeline_, *this, 0, sim::Oscillator(clock_origin, 0), Milliseconds(0)),
      observer_(observers_host_, "observer") {
  for (std::size_t i = 0; i < servers; ++i) {
    servers_.emplace_back(timeline_, lua(), i, sim::Oscillator({}, ppm.empty() ? 0 : ppm[i]),
                          Milliseconds(0), sim::Random(i));
    servers_.back().load_scripts();
    stores_.emplace_back(servers_.back(), observer_);
  }
}

void World::collect_garbage() {
  local::Keyspace unused;
  lua().run(unused, "collectgarbage()", {}, {});
}

World::~World() {
  for (Client& client : clients_) client.go_on();
  // What still waits refers to the clients, so it goes first.
  timeline_.clear();
}

Client& World::client(const ClientOptions& options) {
  ClientOptions chosen = options;
  for (std::size_t i = 0; i < size() && options.servers.empty(); ++i) chosen.servers.push_back(i);
  Client& client = clients_.emplace_back(timeline_, *this, clients_.size() + 1, chosen);
  clients_by_process_[&client.process] = &client;
  return client;
}

Client& World::guarded_client(Duration restart_guard) {
  // None that tests give to others.
  constexpr std::uint64_t seed = 4711;
  return client(ClientOptions{.seed = seed, .restart_guard = restart_guard});
}

std::shared_ptr<sim::Wire> World::dial(sim::Process& process, std::size_t address) {
  const Client& client = *clients_by_process_.at(&process);
  auto wire = std::make_shared<sim::Wire>(process, servers_[client.leads_to[address]], path_);
  wire->fate_of = [server = client.servers[address]](std::string_view request) {
    return server->fate_of(request);
  };
  return wire;
}

bool World::step() {
  if (++events_ > max_events) throw std::runtime_error("runs in circles");
  return timeline_.step();
}

void World::drive(const std::function<bool()>& finished) {
  while (!finished()) {
    if (!step() && !finished()) throw std::runtime_error("stuck");
  }
}

void World::settle() {
  while (step()) {
  }
}

void World::settle_for(Duration span) {
  bool over = false;
  in(span, [&over] { over = true; });
  drive([&over] { return over; });
}

std::size_t World::stores_in_use(const Resource& resource) {
  return static_cast<std::size_t>(
      std::ranges::count_if(stores_, [&](Store& store) { return !store.is_free(resource); }));
}

Resource resource(std::string_view key) {
  return Resource::from(key).value();
}

Ttl ttl(Duration span) {
  return Ttl::from(span).value();
}

ReleaseTerms expiring_in(Duration expire_in) {
  ReleaseTerms terms;
  terms.expire_in = expire_in;
  return terms;
}

AcquireOrder order(Duration length, Duration needed_validity) {
  return {resource(), ttl(length), Owner{"here", "me", "make", "", 1, false}, needed_validity};
}

}  // namespace redlock::unit
