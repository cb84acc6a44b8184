#include "world.hpp"

#include <algorithm>

#include "core/helper_keys.hpp"
#include "engine/inspect.hpp"
#include "store/local/commands.hpp"
#include "store/redis/redis_server.hpp"
#include "witness.hpp"

namespace redlock::sim {
namespace {

/// More than any schedule needs: whoever gets here runs in circles.
constexpr std::size_t max_events = 300'000;

/// More than the busiest of 60,000 schedules asks: in a line with many who share the lock 1,617,
/// else less than 1,500.
constexpr std::size_t max_scripts = 1500;
constexpr std::size_t max_scripts_in_line = 2000;

/// How long those behind somebody who was notified leave it to that one (PROTOCOL Q5).
constexpr Milliseconds standby_delay{1300};

/// By so much a writer that died while it waited holds up readers.
constexpr Milliseconds dead_writer{2000};

/// A server knows by then that somebody was killed.
constexpr Milliseconds hang_up_time{20};

/// After the last session: for what is under way, and what runs in the background.
constexpr Milliseconds settling_time{8000};

/// No fence ever gets there: as milliseconds, it is in some 70,000 years.
constexpr Fence nobodys_fence{std::uint64_t{1} << 51};

/// How long the fence counter outlives everything else, and the longest lease.
constexpr std::chrono::hours for_ever{31 * 24};

/// Above 2^52, so it is no fence.
const std::string unusable_counter = "9007199254740993";
constexpr Milliseconds counter_life = std::chrono::hours(30 * 24);

/// The id of a waiter of a later version, and how long the queues live behind it.
const std::string newer_waiter = "00000000.newer";
constexpr Milliseconds queue_life{35'000};

/// So often a waiter's timer may end its wait just when the first server calls it.
constexpr std::size_t max_hasty_attempts = 2;

/// A foreign client gives its clock as much as we do.
Duration foreign_validity(Duration ttl) {
  return ttl - ttl / 100 - Milliseconds(2);
}

/// Not the product's own quorum_of(): that may be what is wrong.
std::size_t majority(std::size_t servers) {
  return servers / 2 + 1;
}

void run_at(Server& server, const std::vector<std::string>& command) {
  local::execute(server.keyspace(), command);
}

/// In the order in which everybody locks them who wants several.
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
  for (const MachinePlan& plan : schedule_.server_plans) {
    history_.add("s{}: rate {:+} ppm, wall clock {:+} ms", servers_.size() + 1, plan.ppm,
                 plan.wall_offset.count());
    servers_.emplace_back(timeline_, lua, servers_.size(), Oscillator(plan.clock_origin, plan.ppm),
                          plan.wall_offset, Random(random_.bits()));
    servers_.back().watcher = &referees_;
    referees_.each([this](Referee& referee) { referee.add(servers_.back()); });
    leads_to_.push_back(leads_to_.size());
  }
  for (const MachinePlan& plan : schedule_.hosts) {
    history_.add("host {}: rate {:+} ppm, wall clock {:+} ms", hosts_.size() + 1, plan.ppm,
                 plan.wall_offset.count());
    hosts_.emplace_back(timeline_, *this, hosts_.size(), Oscillator(plan.clock_origin, plan.ppm),
                        plan.wall_offset);
  }
  for (const std::size_t host : schedule_.mute_hosts) {
    history_.add("host {} may not publish", host + 1);
    hosts_[host].may_publish = false;
  }
  for (const std::size_t host : schedule_.deaf_hosts) {
    history_.add("host {} may not subscribe", host + 1);
    hosts_[host].may_subscribe = false;
  }
  for (const PathPlan& plan : schedule_.paths)
    paths_.emplace_back(plan.delay, plan.jitter, plan.stragglers, Random(random_.bits()));
}

World::~World() {
  for (Host& host : hosts_) host.go_on();
  timeline_.clear();
}

Process& World::new_process(std::size_t host, std::string name) {
  return processes_.emplace_back(hosts_[host], std::move(name));
}

std::shared_ptr<ServerSet> World::new_electorate(Process& process, Duration server_timeout) {
  std::vector<std::unique_ptr<LockServer>> servers;
  for (const std::size_t server : schedule_.configured) {
    redis::Endpoint endpoint;
    endpoint.host = "s" + std::to_string(server + 1);
    endpoint.port = static_cast<std::uint16_t>(server);
    redis::RedisServerOptions options;
    options.introduces_itself = schedule_.introduces_itself && schedule_.configured.size() > 1;
    auto product = std::make_unique<redis::RedisServer>(timeline_.executor(), process,
                                                        std::move(endpoint), std::move(options));
    servers.push_back(
        std::make_unique<Witness>(std::move(product), referees_, process, servers.size()));
  }
  RandomBits random = [random = Random(random_.bits())]() mutable { return random.bits(); };
  return electorates_.emplace_back(
      std::make_shared<ServerSet>(timeline_.executor(), process, std::move(random),
                                  std::move(servers), server_timeout, schedule_.restart_guard));
}

std::shared_ptr<Wire> World::dial(Process& process, std::size_t server) {
  const std::size_t there = leads_to_[server];
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
      scale * (schedule_.shape == Schedule::Shape::line ? max_scripts_in_line : max_scripts);
  std::size_t events = 0;
  std::optional<Duration> over_since;
  while (!referees_.any_violation() && timeline_.step()) {
    if (++events > scale * max_events) referee_.violate("progress", "it runs in circles");
    if (referees_.scripts() > max_allowed) referee_.violate("load", "they ask without end");
    if (!over_since && all_over() && timeline_.now() > schedule_.calm) over_since = timeline_.now();
    if (over_since && timeline_.now() > *over_since + settling_time) break;
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
                               timeline_.now() + hang_up_time;
  // Those behind it may have been told to leave it to this one; of one that notified nothing, only
  // its entry's end tells.
  if (!session.over() && !keeps_waiting) schedule_.bound += standby_delay;
  // Readers behind it learn only by looking that nobody keeps them from those who read.
  const bool keeps_readers = session.waiting() && !session.plan().mode.shared;
  const auto reads = [](const Session& other) { return other.plan().mode.shared; };
  if (keeps_readers && std::ranges::any_of(sessions_, reads)) schedule_.bound += dead_writer;
  if (!hosts_[session.plan().host].may_subscribe) {
    session.keeps_others_until(timeline_.now() + polling_entry_ttl + hang_up_time);
  }
  session.kill();
}

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
    timeline_.at(mishap.at, [this, &mishap] { befall(mishap); });
  }
}

void World::befall(const Mishap& mishap) {
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
      return;  // the paths know
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
      server.step_wall(mishap.step);
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
    case Mishap::Kind::newer_waiter:
      put_newer_waiter_in_line(mishap.span);
      return;
  }
}

void World::move_address(std::size_t address, std::size_t to) {
  history_.add("the address of s{} leads to s{}", address + 1, to + 1);
  referees_.each([](Referee& referee) { referee.lose_addresses(); });
  servers_[leads_to_[address]].cut_all();
  leads_to_[address] = to;
}

void World::spoil_counter(Server& server, Duration span) {
  const std::string key = HelperKeys(resource_).fence();
  const local::Entry* found = server.keyspace().find(key);
  if (found == nullptr) return;
  const std::string saved = std::get<std::string>(found->value);
  run_at(server, {"SET", key, unusable_counter, "PX", std::to_string(counter_life.count())});
  in(span, [&server, key, saved] {
    const local::Entry* entry = server.keyspace().find(key);
    if (entry == nullptr || std::get<std::string>(entry->value) != unusable_counter) return;
    run_at(server, {"SET", key, saved, "PX", std::to_string(counter_life.count())});
  });
}

void World::put_newer_waiter_in_line(Duration span) {
  const HelperKeys keys(resource_);
  const auto life = std::chrono::duration_cast<Milliseconds>(span);
  for (Server& server : servers_) {
    const std::string ends = std::to_string((server.wall() + life).count());
    run_at(server, {"ZADD", keys.queue(), "1", newer_waiter});
    run_at(server, {"HSET", keys.waiters(), newer_waiter,
                    "exclusive subscribed " + ends + " and what else it has"});
    for (const std::string& key : {keys.queue(), keys.waiters()}) {
      run_at(server, {"PEXPIRE", key, std::to_string(queue_life.count())});
    }
    referee_.keeps_out_until(server.true_time(server.wall() + life + Milliseconds(1)));
  }
  in(span * 9 / 10, [this] { check_newer_waiter(); });
}

void World::check_newer_waiter() {
  const auto forgets = [](const Mishap& mishap) { return mishap.kind == Mishap::Kind::wipe; };
  if (std::ranges::any_of(schedule_.mishaps, forgets)) return;
  for (Server& server : servers_) {
    const local::Entry* queue = server.keyspace().find(HelperKeys(resource_).queue());
    if (queue != nullptr && std::get<local::SortedSet>(queue->value).score(newer_waiter)) continue;
    referee_.violate("line",
                     fmt::format("s{} threw out a waiter of a newer version", server.number() + 1));
  }
}

asio::awaitable<void> World::inspect_lock(Mishap mishap) {
  Process& process = new_process(mishap.host, "inspector");
  const std::shared_ptr<ServerSet> server_set = new_electorate(process, Milliseconds(50));
  const Duration began = timeline_.now();
  referee_.inspected(summarize(co_await redlock::inspect(*server_set, resource_)), began);
  finished(process);
  co_await server_set->close(CloseMode::immediate);
  process.end();
}

asio::awaitable<void> World::break_by_force(Mishap mishap) {
  Process& process = new_process(mishap.host, "breaker");
  const std::shared_ptr<ServerSet> server_set = new_electorate(process, Milliseconds(50));
  std::optional<Fence> only_if;
  if (mishap.flag) only_if = nobodys_fence;
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
  for (Server& server : servers_) {
    if (!server.answers() || server.keyspace().find(resource_.key()) != nullptr) continue;
    ++votes;
    std::vector<std::string> command{"SET", resource_.key(), value, "NX"};
    if (!for_ever) command.insert(command.end(), {"PX", std::to_string(ttl.count())});
    if (for_ever && mishap.flag) command = {"HSET", resource_.key(), value, "1"};
    local::execute(server.keyspace(), command);
  }
  const auto give_back = [this, value] {
    for (Server& server : servers_) {
      const local::Entry* entry = server.keyspace().find(resource_.key());
      if (entry == nullptr) continue;
      const auto* text = std::get_if<std::string>(&entry->value);
      if (text != nullptr ? *text == value
                          : std::get<local::Hash>(entry->value).front().first == value)
        server.keyspace().erase(resource_.key());
    }
  };
  if (votes < majority(servers_.size())) return give_back();
  const Duration until = timeline_.now() + (for_ever ? mishap.span : foreign_validity(ttl));
  if (until <= timeline_.now()) return give_back();
  referee_.foreign_granted(value, until);
  const bool dies = !for_ever && mishap.flag;
  if (dies) return;
  timeline_.at(until, [this, value, give_back] {
    referee_.foreign_ended(value);
    give_back();
  });
}

void World::calm_down() {
  history_.add("all is calm from now on");
  for (Path& path : paths_) path.calm_down();
  for (Server& server : servers_) {
    if (!server.listens()) server.restart();
    if (server.frozen()) server.thaw();
    server.refuse(Refusal::none);
  }
  for (Host& host : hosts_) host.go_on();
}

bool World::all_over() const {
  return std::all_of(sessions_.begin(), sessions_.end(),
                     [](const Session& session) { return session.over(); });
}

void World::note_grant(const Session& session) {
  if (schedule_.shape != Schedule::Shape::line) return check_progress(session);
  check_order(session);
  check_delay(session);
}

void World::recorded(const Session& session, Duration started) {
  history_.add("{} succeeded, and a quorum knows", session.name());
  if (std::string text = nights_.recorded(started); !text.empty())
    referee_.violate("once", session.name() + ": " + text);
}

void World::left_out(const Session& session) {
  history_.add("{} need not run", session.name());
  if (std::string text = nights_.left_out(timeline_.now()); !text.empty())
    referee_.violate("fresh", session.name() + ": " + text);
}

void World::note_giving_up(const Session& session) {
  if (schedule_.shape != Schedule::Shape::line) return;
  if (is_first(session)) check_delay(session);
  // Whoever is first now, and may not come in yet, is told to look in a while.
  for (Session& other : sessions_) {
    if (!other.waiting() ||
        referee_.kept_out_until(other.plan().mode, other.process()) <= timeline_.now())
      continue;
    other.stands_by_until(timeline_.now() + standby_delay);
  }
}

bool World::is_first(const Session& session) const {
  return std::ranges::none_of(sessions_, [&](const Session& other) {
    return &other != &session && other.waiting() && other.plan().start <= session.plan().start;
  });
}

/// Whoever may enter is told so: its own timers are not to find out.
void World::check_delay(const Session& session) {
  Duration since = std::max(referee_.kept_out_until(session.plan().mode, session.process()),
                            session.can_enter_since());
  Duration bound = schedule_.bound;
  for (const Session& other : sessions_) {
    const bool may_be_before =
        other.plan().start <= session.queued_since().value_or(timeline_.now());
    if (&other == &session || !may_be_before) continue;
    if (other.waited_until()) since = std::max(since, *other.waited_until());
    // Who is passed over because it cannot be notified kept the others out until it could have
    // entered itself.
    if (other.waiting() && !other.plan().undisturbed) {
      since = std::max(since, referee_.kept_out_until(other.plan().mode, other.process()));
    }
    // Those behind it are told to stand by, and find out by themselves that there is no slot for
    // it.
    if (other.waiting() && other.plan().mode.slots > 0) bound = schedule_.bound + standby_delay;
  }
  if (timeline_.now() <= since + bound) return;
  referee_.violate(
      "delay", fmt::format("{} could have entered since {:.0f} ms", session.name(), in_ms(since)));
}

void World::check_order(const Session& session) {
  for (const Session& other : sessions_) {
    const bool came_first = other.queued_since() && *other.queued_since() < session.plan().start;
    if (!came_first || !other.waiting() || !other.plan().undisturbed ||
        referee_.was_robbed(other.process()))
      continue;
    // Of two who may have it together, the network decides who hears of it first.
    if (other.plan().mode.shared && session.plan().mode.shared) continue;
    referee_.violate(
        "order", fmt::format("{} overtook {}, who was in the queue since {:.0f} ms", session.name(),
                             other.name(), in_ms(*other.queued_since())));
  }
}

void World::check_progress(const Session& session) {
  Duration since = std::max(schedule_.progress_from, session.can_enter_since());
  Duration bound{};
  for (std::size_t i = 0; i < session.plan().keys; ++i) {
    const Resource& resource = resources_.at(session.plan().first_key + i);
    since = std::max(since, referees_.of(resource).busy_until(session.process()));
    bound += schedule_.bound;
  }
  if (timeline_.now() <= since + bound) return;
  referee_.violate(
      "progress",
      fmt::format("nobody held the lock since {:.0f} ms, though somebody waited", in_ms(since)));
}

void World::check_outcome() {
  std::size_t holders = 0;
  for (const Session& session : sessions_) {
    holders += session.held() ? 1 : 0;
    const auto why = session.gave_up();
    const auto superseded = referee_.superseded_since(session.process());
    if (session.waiting() && superseded &&
        timeline_.now() > std::max(*superseded, schedule_.progress_from) + schedule_.bound) {
      referee_.violate("superseded", session.name() + " waits on although a newer waiter came");
    }
    if (session.waiting() && session.patient()) {
      if (schedule_.shape != Schedule::Shape::line) check_progress(session);
      if (schedule_.shape == Schedule::Shape::line && is_first(session)) check_delay(session);
    }
    using Why = AttemptFailure::Why;
    if (schedule_.shape == Schedule::Shape::duplicate) {
      // Granted, when a quorum of others was faster. Broken by force, it may fail otherwise.
      if (why && why != Why::duplicate && schedule_.mishaps.empty())
        referee_.violate("duplicate", "a server that was given twice was not told");
      continue;
    }
    const auto moved = [](const Mishap& mishap) {
      return mishap.kind == Mishap::Kind::move_address;
    };
    if (why == Why::duplicate && std::ranges::any_of(schedule_.mishaps, moved)) continue;
    const bool may_be_denied = std::ranges::any_of(schedule_.mishaps, [](const Mishap& mishap) {
      return mishap.refusal == Refusal::no_rights;
    });
    if (why == Why::denied && may_be_denied) continue;
    const auto spoiled = [](const Mishap& mishap) {
      return mishap.kind == Mishap::Kind::spoil_counter;
    };
    if (why == Why::misconfigured && std::ranges::any_of(schedule_.mishaps, spoiled)) continue;
    if (why == Why::duplicate || why == Why::denied || why == Why::misconfigured)
      referee_.violate("answer", "a failure that cannot be");
    const bool unavailable = why == Why::unavailable || why == Why::too_slow;
    if (why == Why::superseded) continue;
    if (why && session.patient() && !unavailable)
      referee_.violate("answer", "somebody gave up who waits for ever");
    if (unavailable && session.plan().start > schedule_.calm)
      referee_.violate("answer", "no quorum though nothing was wrong");
  }
  if (schedule_.shape == Schedule::Shape::line && schedule_.mishaps.empty() &&
      referee_.hasty_attempts() > max_hasty_attempts) {
    referee_.violate("load",
                     fmt::format("{} times somebody did not wait for the other servers' calls",
                                 referee_.hasty_attempts()));
  }
  if (schedule_.shape == Schedule::Shape::cron && holders != 1) {
    referee_.violate("split",
                     fmt::format("{} of those that started together got the lock", holders));
  }
}

void World::check_leftovers() {
  if (std::string text = nights_.missing(); !text.empty()) referee_.violate("daily", text);
  for (Server& server : servers_) {
    server.step_wall(for_ever);
    for (const auto& [key, entry] : server.keyspace().live()) {
      referee_.violate("expiry", fmt::format("{} stays for ever at s{}", key, server.number() + 1));
    }
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
