// The parts that schedules of several shapes have in common.
#include "draw.hpp"

#include <algorithm>
#include <array>

#include "core/queue.hpp"
#include "core/validity.hpp"

namespace redlock::sim {
namespace {

using Kind = Mishap::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// How wrong clients' wall clocks may be.
constexpr Milliseconds an_hour{3'600'000};

/// By then everything that was in flight when calm began has arrived, the last after a resend.
constexpr Milliseconds calming_delay{4000};

/// A restart guard longer than all steps back of servers' clocks together: the first fence of a
/// server that forgot everything is its time.
constexpr seconds guard_for_steps_back{10};

/// More waiters than a script examines (MANY in queue.lua).
constexpr std::size_t crowd = 70;

}  // namespace

void Draw::decide_guard() {
  const bool can_guard = schedule_.servers >= min_guarded_servers;
  const bool unguarded = profile_.wipes_unguarded || profile_.one_that_forgets;
  const bool is_kept = profile_.in_promise || profile_.hands_over;
  wipes_ = unguarded || (can_guard && is_kept && !has_nodes() && random_.chance(200));
  max_ttl_ = 2 * base_ttl_;
  wild_ = random_.chance(500);
  servers_step_back_ = !wipes_ || (!unguarded && random_.chance(300));
  if (wipes_ && !unguarded) {
    schedule_.restart_guard =
        servers_step_back_ ? Duration(guard_for_steps_back) : Duration(max_ttl_);
  } else if (can_guard && !wipes_ && random_.chance(100)) {
    schedule_.restart_guard = max_ttl_;
  }
}

void Draw::add_sessions() {
  hosts_ = 2 + random_.below(3);
  const std::size_t sessions = 1 + random_.below(3);
  for (std::size_t i = 0; i < sessions; ++i)
    schedule_.sessions.push_back(session(random_.between(Duration::zero(), span_)));
  // A last session comes when all is calm, and must get the lock.
  SessionPlan last =
      session(schedule_.calm + random_.between(Duration::zero(), Duration(base_ttl_)));
  last.wait.wait.reset();
  last.dies_at.reset();
  last.first_key = 0;
  last.keys = last.style == SessionPlan::Style::handed ? 1 : schedule_.keys;
  schedule_.sessions.push_back(last);
}

void Draw::let_the_newest_win() {
  const Duration around = extra_.between(Duration::zero(), span_);
  const std::size_t more = 2 + extra_.below(5);
  for (std::size_t i = 0; i < more; ++i) {
    SessionPlan plan =
        race_session(around + extra_.between(Duration::zero(),
                                             Duration(milliseconds(20)) * (1 + extra_.below(9))));
    plan.host = extra_.below(hosts_);
    plan.mode = Mode{};
    if (extra_.chance(300)) plan.wait.wait = extra_.between(plan.ttl / 4, 3 * plan.ttl);
    if (extra_.chance(200))
      plan.dies_at = plan.start + extra_.between(Duration::zero(), Duration(base_ttl_));
    schedule_.sessions.insert(schedule_.sessions.begin(), plan);
  }
  if (extra_.chance(250)) have_one_sleep_through_it();
  for (SessionPlan& plan : schedule_.sessions) {
    const bool waits = !plan.wait.wait || *plan.wait.wait > Duration::zero();
    plan.supersedes = waits && !plan.mode.shared;
    plan.replaces = profile_.asks_to_stop && plan.supersedes &&
                    plan.style == SessionPlan::Style::run && extra_.chance(800);
    // Long enough to learn that it must make room.
    if (plan.replaces) plan.work = extra_.between(plan.ttl / 4, 2 * Duration(plan.ttl));
  }
}

void Draw::have_one_sleep_through_it() {
  SessionPlan& sleeper = schedule_.sessions.front();
  sleeper.host = hosts_++;
  sleeper.wait.wait.reset();
  sleeper.dies_at.reset();
  Mishap pause;
  pause.kind = Kind::pause;
  pause.host = sleeper.host;
  pause.at = sleeper.start + extra_.between(Duration(milliseconds(1)), Duration(base_ttl_) / 2);
  pause.span = entry_ttl + extra_.between(Duration(base_ttl_), Duration(base_ttl_) * 10);
  schedule_.mishaps.push_back(pause);

  const Duration longer =
      std::max(Duration::zero(), pause.at + pause.span + Duration(base_ttl_) - schedule_.calm);
  schedule_.calm += longer;
  schedule_.sessions.back().start += longer;
}

SessionPlan Draw::session(Duration start) {
  SessionPlan plan;
  plan.host = random_.below(hosts_);
  plan.start = start;
  plan.style =
      std::array{SessionPlan::Style::run, SessionPlan::Style::run, SessionPlan::Style::while_pid,
                 SessionPlan::Style::handed}[random_.below(4)];
  plan.mode = any_mode();
  plan.ttl = base_ttl_;
  if (random_.chance(200))
    plan.ttl = random_.chance(500) ? 2 * base_ttl_ : std::max(base_ttl_ / 2, milliseconds(400));
  const Duration ttl = plan.ttl;
  plan.server_timeout = default_server_timeout(Ttl::from(plan.ttl).value());
  const bool keeps = plan.style != SessionPlan::Style::handed;
  if (!keeps && random_.chance(300)) plan.server_timeout = ttl;
  if (random_.chance(500))
    plan.wait.wait = random_.chance(500) ? Duration::zero() : random_.between(ttl / 4, 3 * ttl);
  plan.wait.unavailable_wait = random_.between(ttl / 2, 4 * ttl);
  plan.wait.retry_delay = std::max<Duration>(milliseconds(100), ttl / 4);
  plan.work = random_.between(ttl / 20, keeps ? 5 * ttl / 4 : 4 * ttl / 5);
  if (keeps && random_.chance(80))
    plan.expire_in = random_.between(Duration(milliseconds(1)), ttl / 2);
  if (keeps && profile_.in_promise && random_.chance(60)) {
    plan.nested_at = random_.between(Duration::zero(), plan.work);
    plan.nested_work = random_.between(Duration::zero(), ttl);
  }
  if (schedule_.keys > 1) choose_keys(plan);
  if (random_.chance(150)) plan.dies_at = start + random_.between(Duration::zero(), 2 * ttl);
  if (random_.chance(keeps ? 150 : 400)) {
    plan.hand_extend_at = random_.between(Duration::zero(), keeps ? ttl : 11 * ttl / 10);
    plan.hand_ttl =
        std::chrono::duration_cast<Milliseconds>(random_.between(ttl / 4, Duration(max_ttl_)));
  }
  // Servers must refuse it for a `run`.
  const unsigned by_hand = plan.style == SessionPlan::Style::run         ? 100
                           : plan.style == SessionPlan::Style::while_pid ? 300
                                                                         : 700;
  if (random_.chance(by_hand)) {
    plan.hand_release_at = random_.between(Duration::zero(), ttl);
  }
  return plan;
}

void Draw::choose_keys(SessionPlan& plan) {
  const bool may_want_both = plan.style != SessionPlan::Style::handed;
  if (may_want_both && random_.chance(500)) {
    plan.keys = schedule_.keys;
  } else {
    plan.first_key = random_.below(schedule_.keys);
  }
}

void Draw::add_machines() {
  for (std::size_t i = 0; i < schedule_.servers; ++i)
    schedule_.server_plans.push_back(machine(milliseconds(200)));
  if (has_nodes()) add_nodes();
  for (std::size_t i = 0; i < hosts_; ++i)
    schedule_.hosts.push_back(machine(wild_ ? an_hour : milliseconds(100)));
}

MachinePlan Draw::machine(Milliseconds offset) {
  MachinePlan plan;
  plan.clock_origin = random_.between(Duration(seconds(1)), Duration(seconds(1'000'000)));
  // Errors show at the extremes.
  const std::int64_t max_ppm = profile_.rate_ppm;
  plan.ppm = std::array{-max_ppm, max_ppm, std::int64_t{0},
                        random_.between(-max_ppm, max_ppm)}[random_.below(4)];
  plan.wall_offset = Milliseconds(random_.between(-offset.count(), offset.count()));
  return plan;
}

void Draw::add_paths(bool may_straggle) {
  const bool slow = random_.chance(200);
  for (std::size_t i = 0; i < hosts_ * schedule_.server_plans.size(); ++i) {
    PathPlan path;
    path.delay = random_.between(Duration(std::chrono::microseconds(50)),
                                 slow ? Duration(milliseconds(3)) : Duration(milliseconds(1)));
    path.jitter = random_.between(Duration::zero(), path.delay);
    if (may_straggle && random_.chance(250))
      path.stragglers = static_cast<unsigned>(5 + random_.below(50));
    schedule_.paths.push_back(path);
  }
}

void Draw::add_mishaps() {
  const std::size_t count = random_.chance(200) ? 0 : 1 + random_.below(5);
  for (std::size_t i = 0; i < count; ++i) schedule_.mishaps.push_back(mishap(any_kind()));
  if (random_.chance(150)) add_stumble();
  if (wipes_) {
    for (std::size_t i = 1 + random_.below(3); i > 0; --i)
      schedule_.mishaps.push_back(mishap(Kind::wipe));
  }
  if (profile_.in_promise && !has_nodes() && random_.chance(40)) add_address_on_the_move();
  if (moves_address_) add_address_on_the_move();
  if (oversleeps_) have_first_oversleep();
  if (profile_.in_promise && !has_nodes() && random_.chance(15))
    schedule_.mishaps.push_back(mishap(Kind::spoil_counter));
  if (profile_.in_promise && !has_nodes() && random_.chance(25))
    schedule_.mishaps.push_back(mishap(Kind::newer_waiter));
  if (profile_.spoils_helper_keys) spoil_helper_keys();
  if (profile_.asks_to_stop) {
    for (std::size_t i = 1 + random_.below(6); i > 0; --i)
      schedule_.mishaps.push_back(mishap(Kind::ask));
  }
  if (profile_.ranks_waiters) {
    for (std::size_t i = extra_.below(3); i > 0; --i)
      schedule_.mishaps.push_back(mishap(Kind::dismiss));
  }
  if (profile_.servers_jump_forward) {
    for (std::size_t i = 0; i < schedule_.servers; ++i) {
      Mishap jump = mishap(Kind::step_server_wall);
      jump.step =
          std::chrono::duration_cast<Milliseconds>(random_.between(base_ttl_ / 5, 3 * base_ttl_));
      schedule_.mishaps.push_back(jump);
    }
  }
}

void Draw::add_crowd() {
  const auto add = [this](Mode mode, Duration start) {
    SessionPlan plan = race_session(start);
    plan.host = random_.below(hosts_);
    plan.mode = mode;
    plan.wait.wait = random_.between(Duration(base_ttl_), span_);
    if (random_.chance(100)) plan.dies_at = start + random_.between(Duration::zero(), span_);
    schedule_.sessions.insert(schedule_.sessions.begin(), plan);
  };
  const Mode one_slot{.shared = true, .slots = 1};
  for (std::size_t i = 0; i < crowd; ++i)
    add(one_slot, random_.between(Duration::zero(), Duration(base_ttl_)));
  for (std::size_t i = 0; i < 6; ++i) {
    add(i < 2 ? Mode{} : Mode{.shared = true}, base_ttl_);
    schedule_.sessions.front().start += random_.between(Duration::zero(), Duration(base_ttl_));
  }
}

void Draw::spoil_helper_keys() {
  if (random_.chance(200)) schedule_.hosts_without_publish.push_back(random_.below(hosts_));
  if (random_.chance(200)) schedule_.hosts_without_subscribe.push_back(random_.below(hosts_));
  const std::size_t count = random_.below(8);
  for (std::size_t i = 0; i < count; ++i) {
    Mishap spoil = mishap(Kind::spoil_key);
    spoil.spoiling = random_.below(std::size(spoilings));
    schedule_.mishaps.push_back(spoil);
  }
  for (SessionPlan& plan : schedule_.sessions) {
    // A server that lost the owner record would allow a release by hand.
    if (plan.style == SessionPlan::Style::run) plan.hand_release_at.reset();
    if (plan.style != SessionPlan::Style::handed && random_.chance(500)) {
      plan.once_per = milliseconds(1);
      plan.fails = random_.chance(300);
    }
  }
}

void Draw::deny_commands() {
  // A process whose undo is refused leaves a ghost; here only exclusion is promised.
  constexpr std::array commands{"DEL",    "GET",           "HDEL",  "HGET",   "HMGET",
                                "HSET",   "PEXPIRE",       "PTTL",  "PUBSUB", "SET",
                                "TIME",   "TYPE",          "ZADD",  "ZCARD",  "ZCOUNT",
                                "ZRANGE", "ZRANGEBYSCORE", "ZRANK", "ZREM",   "ZREMRANGEBYSCORE",
                                "ZSCORE"};
  for (std::size_t i = extra_.below(6); i > 0; --i) {
    Mishap denial;
    denial.kind = Kind::deny_command;
    denial.server = extra_.below(schedule_.servers);
    denial.command = commands[extra_.below(commands.size())];
    denial.at = extra_.between(Duration::zero(), span_);
    denial.span = std::min(extra_.between(Duration(milliseconds(1)), 2 * Duration(base_ttl_)),
                           schedule_.calm - denial.at);
    schedule_.mishaps.push_back(denial);
  }
}

void Draw::take_slots() {
  for (SessionPlan& plan : schedule_.sessions) {
    if (plan.supersedes || plan.keys > 1) continue;
    if (extra_.chance(800)) {
      plan.mode = Mode{true, 2 + extra_.below(3)};
      plan.mode.take = 1 + extra_.below(plan.mode.slots);
    }
    const bool waits = !plan.wait.wait || *plan.wait.wait > Duration::zero();
    if (waits && extra_.chance(200)) plan.max_waiting = 1 + extra_.below(3);
  }
}

void Draw::name_slots(bool may_number) {
  const std::vector<std::string> all{"a", "b", "c", "d"};
  for (SessionPlan& plan : schedule_.sessions) {
    if (plan.supersedes || plan.keys > 1) continue;
    const bool stays = extra_.chance(150) && (may_number || plan.mode.slots == 0);
    if (stays) continue;
    if (may_number && extra_.chance(100)) {
      plan.mode = Mode{true, 1 + extra_.below(3)};
      continue;
    }
    std::vector<std::string> names = all;
    for (std::size_t i = names.size() - 1; i > 0; --i)
      std::swap(names[i], names[extra_.below(i + 1)]);
    names.resize(extra_.chance(400) ? 1 : 2 + extra_.below(3));
    plan.mode = Mode{true, names.size(), 1, names};
    if (extra_.chance(200)) plan.mode.take = 1 + extra_.below(names.size());
  }
}

void Draw::lose_slots() {
  for (SessionPlan& plan : schedule_.sessions) {
    if (!plan.supersedes && extra_.chance(800)) plan.mode = Mode{true, 1 + extra_.below(2)};
  }
  for (std::size_t i = 1 + extra_.below(4); i > 0; --i) {
    Mishap loss;
    loss.kind = Kind::lose_slots;
    loss.at = extra_.between(Duration::zero(), span_);
    for (loss.server = 0; loss.server < schedule_.servers; ++loss.server) {
      if (extra_.chance(800)) schedule_.mishaps.push_back(loss);
    }
  }
}

void Draw::add_users() {
  for (SessionPlan& plan : schedule_.sessions) {
    if (extra_.chance(300)) continue;
    plan.style = extra_.chance(500) ? SessionPlan::Style::while_pid : SessionPlan::Style::handed;
    if (extra_.chance(500))
      plan.hand_release_at = extra_.between(Duration::zero(), Duration(plan.ttl));
    for (std::size_t i = 1 + extra_.below(2); i > 0; --i) {
      SessionPlan::Use use;
      use.host = extra_.below(hosts_);
      use.at = extra_.between(Duration::zero(), Duration(plan.ttl));
      use.ttl = extra_.chance(500) ? plan.ttl : max_ttl_;
      use.work = extra_.between(Duration::zero(), 2 * Duration(plan.ttl));
      if (extra_.chance(150))
        use.dies_after = extra_.between(Duration::zero(), 2 * Duration(plan.ttl));
      plan.uses.push_back(use);
    }
  }
  for (std::size_t i = 1 + extra_.below(3); i > 0; --i) {
    SessionPlan plan = race_session(extra_.between(Duration::zero(), span_));
    plan.host = extra_.below(hosts_);
    schedule_.sessions.insert(schedule_.sessions.begin(), plan);
  }
  for (std::size_t i = extra_.below(4); i > 0; --i) {
    Mishap loss;
    loss.kind = Kind::lose_record;
    loss.server = extra_.below(schedule_.servers);
    loss.at = extra_.between(Duration::zero(), span_);
    schedule_.mishaps.push_back(loss);
  }
}

void Draw::have_first_oversleep() {
  SessionPlan& victim = schedule_.sessions.front();
  victim.style = SessionPlan::Style::handed;
  victim.keys = 1;
  victim.nested_at.reset();
  victim.expire_in = Duration::zero();
  victim.dies_at.reset();
  victim.server_timeout = 2 * victim.ttl;
  Mishap pause;
  pause.kind = Kind::pause;
  pause.host = victim.host;
  pause.at = victim.start + random_.between(Duration::zero(), Duration(milliseconds(8)));
  pause.span =
      std::min(Duration(victim.ttl) + random_.between(Duration::zero(), Duration(victim.ttl) / 4),
               schedule_.calm - pause.at);
  schedule_.mishaps.push_back(pause);
}

void Draw::add_address_on_the_move() {
  if (schedule_.servers < 2) return;
  Mishap move = mishap(Kind::move_address);
  move.other = (move.server + 1 + random_.below(schedule_.servers - 1)) % schedule_.servers;
  if (moves_address_) move_between_grant_and_raise(move);
  schedule_.mishaps.push_back(move);
}

void Draw::move_between_grant_and_raise(Mishap& move) {
  const SessionPlan& victim = schedule_.sessions.front();
  for (std::size_t i = 0; i < schedule_.servers; ++i) {
    PathPlan& path = schedule_.paths[victim.host * schedule_.servers + i];
    path = {i == move.server ? Duration(std::chrono::microseconds(300)) : Duration(milliseconds(3)),
            Duration(std::chrono::microseconds(100)), 0};
  }
  move.at = victim.start + random_.between(Duration(milliseconds(3)), Duration(milliseconds(20)));
  move.span = std::min(Duration(base_ttl_), schedule_.calm - move.at);
}

Kind Draw::any_kind() {
  constexpr std::array kinds{
      Kind::crash,   Kind::freeze,           Kind::freeze,           Kind::outage,
      Kind::outage,  Kind::isolate_host,     Kind::isolate_server,   Kind::cut,
      Kind::pause,   Kind::step_client_wall, Kind::step_server_wall, Kind::break_lock,
      Kind::foreign, Kind::foreign_for_ever, Kind::flush_scripts,    Kind::refuse,
      Kind::refuse,  Kind::inspect};
  const Kind kind = kinds[random_.below(kinds.size())];
  if (kind == Kind::step_server_wall && !servers_step_back_) return Kind::outage;
  // Other libraries have no restart guard.
  const bool is_foreign = kind == Kind::foreign || kind == Kind::foreign_for_ever;
  return is_foreign && wipes_ ? Kind::outage : kind;
}

Duration Draw::when_asked(const SessionPlan& victim) {
  const Duration extensions =
      random_.chance(500) ? Duration::zero() : Duration(victim.ttl) / 3 * random_.between(1, 3);
  return std::min(
      victim.start + extensions + random_.between(Duration::zero(), Duration(milliseconds(8))),
      schedule_.calm);
}

void Draw::add_stumble() {
  const SessionPlan& victim = schedule_.sessions[random_.below(schedule_.sessions.size() - 1)];
  Mishap pause;
  pause.kind = Kind::pause;
  pause.host = victim.host;
  pause.at = when_asked(victim);
  pause.span = std::min(random_.between(Duration(milliseconds(5)), Duration(victim.ttl) / 2),
                        schedule_.calm - pause.at);
  Mishap outage;
  outage.kind = Kind::isolate_host;
  outage.host = victim.host;
  outage.at = pause.at + std::min(pause.span, Duration(milliseconds(10)));
  outage.span = schedule_.calm - outage.at;
  schedule_.mishaps.push_back(pause);
  schedule_.mishaps.push_back(outage);
}

Mishap Draw::mishap(Kind kind) {
  Mishap mishap;
  mishap.kind = kind;
  // Half of them happen during a session's round, where the windows are narrow.
  mishap.at = random_.between(Duration::zero(), span_);
  if (random_.chance(500)) {
    const SessionPlan& victim = schedule_.sessions[random_.below(schedule_.sessions.size() - 1)];
    mishap.at = when_asked(victim);
    mishap.host = victim.host;
  } else {
    mishap.host = random_.below(hosts_);
  }
  mishap.server = random_.below(schedule_.servers);
  const Duration max_span = random_.chance(500) ? base_ttl_ / 4 : 3 * base_ttl_ / 2;
  mishap.span =
      std::min(random_.between(Duration(milliseconds(1)), max_span), schedule_.calm - mishap.at);
  if (kind == Kind::step_client_wall)
    mishap.step =
        wild_ ? Milliseconds(random_.between(-an_hour.count(), an_hour.count())) : milliseconds(0);
  // Back only: a step forward would make keys expire too early.
  if (kind == Kind::step_server_wall) mishap.step = Milliseconds(random_.between(-1000, 0));
  mishap.flag = random_.chance(500);
  if (kind == Kind::refuse) mishap.refusal = any_refusal();
  return mishap;
}

Refusal Draw::any_refusal() {
  constexpr std::array refusals{Refusal::loading,   Refusal::busy,      Refusal::read_only,
                                Refusal::read_only, Refusal::no_rights, Refusal::misconf,
                                Refusal::oom,       Refusal::oom};
  return refusals[random_.below(refusals.size())];
}

void Draw::configure_all() {
  for (std::size_t i = 0; i < schedule_.servers; ++i) schedule_.configured.push_back(i);
}

void Draw::finish() {
  configure_all();
  if (profile_.ranks_waiters) {
    for (SessionPlan& plan : schedule_.sessions)
      plan.priority = extra_.chance(500) ? 0 : 1 + static_cast<unsigned>(extra_.below(3));
  }
  Duration bound = milliseconds(4000) + (schedule_.restart_guard > Duration::zero()
                                             ? schedule_.restart_guard + seconds(2)
                                             : Duration::zero());
  Duration max_lease = max_ttl_;
  for (const SessionPlan& plan : schedule_.sessions) {
    max_lease = std::max<Duration>({max_lease, plan.ttl, plan.hand_ttl});
    bound += plan.server_timeout;
  }
  for (const Mishap& mishap : schedule_.mishaps)
    bound += std::max(Duration::zero(), Duration(-mishap.step));
  schedule_.progress_from = schedule_.calm + calming_delay;
  schedule_.bound = bound + max_lease + max_lease / 10;
}

std::size_t Draw::pick(std::initializer_list<int> choices) {
  return static_cast<std::size_t>(*(choices.begin() + random_.below(choices.size())));
}

}  // namespace redlock::sim
