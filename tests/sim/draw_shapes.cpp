// The shapes that a schedule may have.
#include "draw.hpp"

#include <algorithm>

#include "core/validity.hpp"

namespace redlock::sim {
namespace {

using Kind = Mishap::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// From the end of a lease until the next one, when all is well: less than any timer of a waiter.
constexpr milliseconds hand_over{250};

/// How long the waiters of one host delay the others when it stands still or is gone (PROTOCOL Q5).
constexpr seconds of_one_host{3};

/// How long a waiter whose subscription broke may take to subscribe again.
constexpr milliseconds resubscribing{250};

/// By then the first three waiters in the queue have polled, whatever they know.
constexpr milliseconds polls_of_three{4600};

}  // namespace

Schedule Draw::make() {
  const std::size_t shape = random_.below(100);
  moves_address_ = profile_.in_promise && !has_nodes() && shape == 97;
  oversleeps_ = profile_.in_promise && shape == 96;
  if (profile_.in_promise && !has_nodes() && shape >= 98) {
    race_of_heals();
  } else if (profile_.in_promise && !has_nodes() && shape == 95) {
    majority_forgets();
  } else if (!profile_.in_promise || shape >= 25) {
    chaos();
  } else if (shape >= 10) {
    queue();
  } else if (shape >= 3) {
    cron();
  } else {
    duplicate();
  }
  return std::move(schedule_);
}

void Draw::chaos() {
  schedule_.servers =
      profile_.one_that_forgets ? 1 : pick({1, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 5, 5});
  base_ttl_ = milliseconds(pick({400, 700, 1500, 4000}));
  span_ = base_ttl_ * static_cast<int>(2 + random_.below(3));
  schedule_.calm = span_ + base_ttl_;
  decide_guard();
  mixes_modes_ = random_.chance(400);
  if (profile_.in_promise && !has_nodes() && random_.chance(120)) schedule_.keys = 2;
  add_sessions();
  if (schedule_.keys == 1 && extra_.chance(profile_.asks_to_stop ? 500 : 200)) let_the_newest_win();
  if (profile_.spoils_helper_keys && random_.chance(30)) add_crowd();
  add_machines();
  add_paths(/*may_straggle=*/true);
  add_mishaps();
  if (has_nodes()) add_node_changes();
  if (profile_.spoils_helper_keys) deny_commands();
  if (mixes_modes_ && profile_.in_promise && extra_.chance(200)) lose_slots();
  if (profile_.takes_slots) take_slots();
  if (profile_.names_slots) name_slots(/*may_number=*/true);
  if (profile_.hands_over) add_users();
  finish();
}

void Draw::race_of_heals() {
  schedule_.servers = pick({3, 3, 5});
  base_ttl_ = milliseconds(pick({700, 1500}));
  max_ttl_ = base_ttl_;
  hosts_ = 1;
  mixes_modes_ = random_.chance(400);
  schedule_.calm = 3 * base_ttl_;
  const Duration delay = random_.between(Duration(milliseconds(2)), Duration(milliseconds(4)));
  const Duration third = Duration(base_ttl_) / 3;
  SessionPlan keeper = race_session(Duration::zero());
  keeper.style = SessionPlan::Style::while_pid;
  keeper.work = base_ttl_;
  // A new process's first request is read three delays later, its second one five delays later.
  keeper.hand_extend_at = third - random_.between(9 * delay, 17 * delay);
  keeper.hand_ttl = base_ttl_;
  keeper.hand_release_at = *keeper.hand_extend_at + random_.between(delay, 5 * delay);
  schedule_.sessions.push_back(keeper);
  schedule_.sessions.push_back(race_session(schedule_.calm));
  Mishap evict;
  evict.kind = Kind::evict;
  evict.server = random_.below(schedule_.servers);
  evict.at = third - 2 * delay;
  schedule_.mishaps.push_back(evict);
  add_machines();
  for (std::size_t i = 0; i < schedule_.servers; ++i)
    schedule_.paths.push_back({delay, delay / 3, 0});
  finish();
}

void Draw::majority_forgets() {
  schedule_.servers = 3;
  base_ttl_ = milliseconds(pick({1500, 4000}));
  max_ttl_ = 2 * base_ttl_;
  schedule_.restart_guard = max_ttl_;
  schedule_.calm = 5 * base_ttl_;
  hosts_ = 2;
  SessionPlan holder = race_session(Duration::zero());
  holder.style = SessionPlan::Style::handed;
  holder.ttl = max_ttl_;
  holder.work = Duration(max_ttl_) * 3 / 4;
  SessionPlan taker =
      race_session(random_.between(Duration(milliseconds(100)), Duration(base_ttl_)));
  taker.host = 1;
  taker.ttl = base_ttl_ / 2;
  schedule_.sessions = {holder, taker, race_session(schedule_.calm)};
  const std::size_t remembers = random_.below(schedule_.servers);
  for (std::size_t server = 0; server < schedule_.servers; ++server) {
    if (server == remembers) continue;
    Mishap wipe;
    wipe.kind = Kind::wipe;
    wipe.server = server;
    wipe.at = random_.between(milliseconds(60), milliseconds(100));
    wipe.span = random_.between(milliseconds(1), milliseconds(20));
    schedule_.mishaps.push_back(wipe);
  }
  add_machines();
  add_paths(/*may_straggle=*/false);
  finish();
}

SessionPlan Draw::race_session(Duration start) {
  SessionPlan plan;
  plan.start = start;
  plan.mode = any_mode();
  plan.ttl = base_ttl_;
  plan.server_timeout = default_server_timeout(Ttl::from(plan.ttl).value());
  plan.wait.unavailable_wait = seconds(60);
  plan.wait.retry_delay = milliseconds(100);
  plan.work = milliseconds(50);
  return plan;
}

void Draw::queue() {
  schedule_.shape = Schedule::Shape::queue;
  schedule_.servers = pick({1, 3, 3, 3, 5});
  base_ttl_ = milliseconds(pick({700, 1500, 4000}));
  max_ttl_ = base_ttl_;
  hosts_ = 3 + random_.below(3);
  mixes_modes_ = random_.chance(500);
  const std::size_t waiters = random_.chance(100) ? 6 + random_.below(7) : 2 + random_.below(4);
  for (std::size_t i = 0; i < waiters; ++i) schedule_.sessions.push_back(waiter());
  if (profile_.names_slots) name_slots(/*may_number=*/false);
  schedule_.bound = bound_of_hand_over();
  const auto leaves_a_share = [](const SessionPlan& plan) {
    return plan.mode.shared && plan.expire_in > Duration::zero();
  };
  if (std::ranges::any_of(schedule_.sessions, leaves_a_share)) schedule_.bound += standby_delay;
  schedule_.calm = Duration(base_ttl_) * 3;
  if (profile_.has_host_names && extra_.chance(150)) {
    stop_host_of_most();
  } else if (profile_.votes == VoteKind::cluster && extra_.chance(150)) {
    keep_through_a_stall();
  } else if (!has_nodes() && extra_.chance(60)) {
    set_clocks_back();
  } else {
    if (profile_.takes_slots) take_slots();
    disturb_waiters();
  }
  schedule_.monitored = extra_.chance(300);
  add_machines();
  add_paths(/*may_straggle=*/false);
  configure_all();
}

Duration Draw::bound_of_hand_over() const {
  return hand_over + Duration(base_ttl_) / 50;
}

void Draw::stop_host_of_most() {
  constexpr std::size_t most = 0;
  constexpr std::size_t another = 1;
  // From the sixth position on a waiter polls every 15 s. All are queued before the host stops,
  // which is before the release, and it stands still for longer than that.
  const std::size_t before = 5 + extra_.below(3);
  const std::size_t behind = 1 + extra_.below(3);
  schedule_.sessions.clear();
  for (std::size_t i = 0; i <= before + 1 + behind; ++i) {
    SessionPlan plan = waiter();
    plan.start = static_cast<int>(i) * milliseconds(50);
    plan.host = i == 0 || i == before + 1 ? another : most;
    plan.mode = Mode{};
    plan.wait.wait.reset();
    schedule_.sessions.push_back(plan);
  }
  hold_for(seconds(2));
  keep_nothing();

  stand_still(most);
  keep_away(most, schedule_.calm);
  schedule_.bound = bound_of_hand_over() + of_one_host;
}

void Draw::stand_still(std::size_t host) {
  Mishap pause;
  pause.kind = Kind::pause;
  pause.host = host;
  pause.at = seconds(1);
  pause.span = seconds(20);
  schedule_.mishaps.push_back(pause);
  schedule_.calm = pause.at + pause.span;
}

void Draw::set_clocks_back() {
  constexpr std::size_t stands_still = 0;
  schedule_.sessions.clear();
  for (std::size_t i = 0; i < 3 + extra_.below(3); ++i) {
    SessionPlan plan = waiter();
    plan.start = static_cast<int>(i) * milliseconds(50);
    plan.host = i == 1 ? stands_still : 1;
    plan.mode = Mode{};
    plan.wait.wait.reset();
    schedule_.sessions.push_back(plan);
  }
  hold_for(seconds(2));
  keep_nothing();

  stand_still(stands_still);
  Mishap step;
  step.kind = Kind::step_server_wall;
  step.at = seconds(2) + extra_.between(Duration::zero(), Duration(milliseconds(900)));
  step.step = -milliseconds(600'000);
  for (step.server = 0; step.server < schedule_.servers; ++step.server)
    schedule_.mishaps.push_back(step);
  keep_away(stands_still, schedule_.calm);
  // It must not be the one that ends the others' wait.
  schedule_.sessions[1].dies_at = seconds(10);
  schedule_.bound = bound_of_hand_over() + of_one_host;
}

SessionPlan Draw::waiter() {
  SessionPlan plan;
  plan.start = random_.between(Duration::zero(), Duration(base_ttl_) / 2);
  plan.host = random_.below(hosts_);
  plan.ttl = base_ttl_;
  plan.server_timeout = default_server_timeout(Ttl::from(plan.ttl).value());
  if (random_.chance(150))
    plan.wait.wait = random_.between(Duration(base_ttl_) / 4, 2 * Duration(base_ttl_));
  plan.wait.unavailable_wait = seconds(60);
  plan.wait.retry_delay = milliseconds(100);
  plan.work = random_.between(Duration(base_ttl_) / 20, Duration(base_ttl_) / 2);
  if (random_.chance(150))
    plan.expire_in = random_.between(Duration(milliseconds(1)), Duration(base_ttl_) / 2);
  plan.mode = any_mode();
  plan.undisturbed = true;
  return plan;
}

void Draw::disturb_waiters() {
  SessionPlan& victim = schedule_.sessions[random_.below(schedule_.sessions.size())];
  const Duration when = random_.between(victim.start, victim.start + Duration(base_ttl_));
  if (has_nodes() && random_.chance(500)) return change_nodes_of_queue(when);
  switch (random_.below(16)) {
    case 0:
    case 1:
      victim.dies_at = when;
      victim.undisturbed = false;
      return keep_nothing();
    case 2:
      return disturb_hosts(Kind::pause, when);
    case 3:
      return disturb_hosts(Kind::outage, when);
    case 4:
      return add_to_queue(Kind::break_lock, when, random_.below(hosts_));
    case 5:
      add_to_queue(Kind::cut_subscriptions, when, victim.host);
      return keep_away(victim.host, when + resubscribing);
    case 6:
      return lose_power();
    case 7:
      return forbid_notifications();
    case 8:
      // Other readers wait until those that share the lock have noticed (PROTOCOL M1).
      schedule_.bound += Duration(base_ttl_) / 2;
      keep_nothing();
      return add_to_queue(Kind::lose_marker, when, 0);
    case 9:
      return add_to_queue(Kind::inspect, when, random_.below(hosts_));
    case 10:
      return add_writer_that_gives_up();
    default:
      return;
  }
}

void Draw::add_writer_that_gives_up() {
  schedule_.sessions.resize(2);
  hold_for(Duration(base_ttl_) * 2);
  SessionPlan& behind = schedule_.sessions.back();
  schedule_.sessions.front().mode.shared = true;
  behind.mode = Mode{.shared = true};
  behind.start = Duration(base_ttl_) / 4;
  behind.wait.wait.reset();
  SessionPlan writer = waiter();
  writer.mode = Mode{};
  writer.start = behind.start - milliseconds(50);
  writer.wait.wait = random_.between(milliseconds(100), Duration(base_ttl_));
  schedule_.sessions.push_back(writer);
}

void Draw::add_to_queue(Kind kind, Duration when, std::size_t host) {
  Mishap mishap;
  mishap.kind = kind;
  mishap.at = when;
  mishap.host = host;
  schedule_.mishaps.push_back(mishap);
}

void Draw::keep_away(std::size_t host, Duration until) {
  for (SessionPlan& plan : schedule_.sessions) {
    if (plan.host != host) continue;
    plan.undisturbed = false;
    plan.away_until = until;
  }
}

void Draw::disturb_hosts(Kind kind, Duration when) {
  const std::size_t number = random_.chance(300) ? 2 + random_.below(hosts_ - 2) : 1;
  const std::size_t first = random_.below(hosts_);
  for (std::size_t i = 0; i < number; ++i) {
    Mishap mishap;
    mishap.kind = kind;
    mishap.host = (first + i) % hosts_;
    mishap.at = when;
    mishap.span = random_.between(Duration(base_ttl_) / 10, Duration(base_ttl_) * 3 - when);
    // The servers that remain reachable notify its waiters in vain.
    const std::size_t cut_off = kind == Kind::pause ? 1 : schedule_.servers / 2 + 1;
    for (mishap.server = 0; mishap.server < cut_off; ++mishap.server)
      schedule_.mishaps.push_back(mishap);
    keep_away(mishap.host, mishap.at + mishap.span);
    schedule_.bound += of_one_host;
  }
  schedule_.bound += base_ttl_ + milliseconds(1000);
}

void Draw::lose_power() {
  const Duration when = random_.between(Duration(base_ttl_) * 6 / 10, Duration(base_ttl_));
  const Duration polled = when + base_ttl_ + polls_of_three;
  schedule_.sessions.resize(std::min<std::size_t>(schedule_.sessions.size(), 4));
  hold_for(polled + random_.between(Duration::zero(), 2 * Duration(base_ttl_)));
  add_to_queue(Kind::power_loss, when, 0);
  for (std::size_t host = 0; host < hosts_; ++host) keep_away(host, polled);
}

void Draw::hold_for(Duration span) {
  SessionPlan& holder = schedule_.sessions.front();
  holder.start = Duration::zero();
  holder.mode = Mode{};
  holder.work = span;
  for (SessionPlan& plan : schedule_.sessions) plan.start += milliseconds(20);
  holder.start = Duration::zero();
}

void Draw::forbid_notifications() {
  const std::size_t host = random_.below(hosts_);
  schedule_.sessions.resize(std::min<std::size_t>(schedule_.sessions.size(), 4));
  if (random_.chance(500)) {
    schedule_.hosts_without_publish.push_back(host);
    if (random_.chance(300)) add_mute_reader(host);
    schedule_.bound += polls_of_three + milliseconds(1000);
    return;
  }
  schedule_.hosts_without_subscribe.push_back(host);
  schedule_.bound += max_unnotified_poll_interval;
  hold_for(random_.between(seconds(3), seconds(5)));
  SessionPlan& victim = schedule_.sessions[1];
  victim.host = host;
  if (random_.chance(500)) return;
  victim.dies_at = random_.between(victim.start, victim.start + milliseconds(2500));
  victim.undisturbed = false;
  keep_nothing();
}

void Draw::keep_nothing() {
  for (SessionPlan& plan : schedule_.sessions) plan.expire_in = Duration::zero();
}

void Draw::add_mute_reader(std::size_t host) {
  schedule_.sessions.resize(2);
  hold_for(random_.between(seconds(3), seconds(5)));
  schedule_.sessions[0].mode.shared = true;
  schedule_.sessions[1].mode = Mode{};
  schedule_.sessions[1].wait.wait.reset();
  for (SessionPlan& plan : schedule_.sessions) plan.host = (host + 1) % hosts_;
  for (std::size_t i = 0; i < 2; ++i) {
    SessionPlan reader = waiter();
    reader.mode = Mode{.shared = true};
    reader.host = host;
    reader.start =
        schedule_.sessions[1].start + random_.between(milliseconds(100), milliseconds(2500));
    schedule_.sessions.push_back(reader);
  }
}

Mode Draw::any_mode() {
  Mode mode;
  if (!mixes_modes_ || random_.chance(500)) return mode;
  mode.shared = true;
  if (random_.chance(500)) mode.slots = 1 + random_.below(3);
  return mode;
}

void Draw::cron() {
  schedule_.shape = Schedule::Shape::cron;
  schedule_.servers = pick({1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 5});
  base_ttl_ = milliseconds(4000);
  max_ttl_ = base_ttl_;
  const std::size_t rivals = 1 + random_.below(4);
  for (std::size_t i = 0; i < rivals; ++i) {
    SessionPlan plan;
    plan.start = random_.between(Duration::zero(), Duration(milliseconds(3)));
    plan.host = i;
    plan.ttl = base_ttl_;
    plan.server_timeout = default_server_timeout(Ttl::from(plan.ttl).value());
    plan.wait.wait = Duration::zero();
    plan.work = milliseconds(3000);
    schedule_.sessions.push_back(plan);
  }
  hosts_ = rivals;
  add_machines();
  add_paths(/*may_straggle=*/false);
  finish();
}

void Draw::duplicate() {
  schedule_.shape = Schedule::Shape::duplicate;
  schedule_.servers = 1 + random_.below(3);
  schedule_.identifies_itself = random_.chance(500);
  base_ttl_ = milliseconds(1500);
  max_ttl_ = base_ttl_;
  schedule_.sessions.push_back(session(Duration::zero()));
  hosts_ = 1;
  schedule_.sessions.front().host = 0;
  add_machines();
  add_paths(/*may_straggle=*/false);
  finish();
  schedule_.configured.push_back(random_.below(schedule_.servers));
  // If the lease is broken between the two attempts, only the run id shows that the server is the
  // same.
  if (!schedule_.identifies_itself || random_.chance(300)) return;
  const Duration when = schedule_.sessions.front().start +
                        random_.between(Duration::zero(), Duration(milliseconds(12)));
  for (std::size_t i = 0; i < 6; ++i)
    add_to_queue(Kind::break_lock, when + i * std::chrono::microseconds(300), 0);
}

}  // namespace redlock::sim
