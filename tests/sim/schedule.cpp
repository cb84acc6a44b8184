#include "schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/validity.hpp"
#include "history.hpp"
#include "nightly.hpp"
#include "virtual/random.hpp"

namespace redlock::sim {
namespace {

using Kind = Mishap::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// By so much clients' wall clocks may be wrong.
constexpr Milliseconds an_hour{3'600'000};

/// What was under way when all became calm has arrived by then: the latest is sent again once more.
constexpr Milliseconds calming_time{4000};

/// A restart guard that outlasts all by which servers' clocks are set back: the first fence of one
/// that forgot is its time.
constexpr seconds guard_for_steps_back{10};

/// From the end of a lease until the next one, all being well: less than any timer of a waiter's.
constexpr milliseconds hand_over{250};

/// Until a waiter looks that was told to do so in a while.
constexpr milliseconds standby_delay{1300};

/// By so much the waiters of one host hold up the others when it stands still or is gone (PROTOCOL
/// Q5).
constexpr seconds of_one_host{3};

/// How long a waiter whose subscription broke may take to subscribe again.
constexpr milliseconds resubscribing{250};

/// By then the first three in the queue have looked again, whatever they know.
constexpr milliseconds looks_of_three{4600};

class Draw {
 public:
  Draw(const Profile& profile, std::uint64_t seed)
      : profile_(profile), random_(seed), extra_(seed ^ 0x5059) {}

  Schedule make() {
    const std::size_t shape = random_.below(100);
    moves_address_ = profile_.in_promise && shape == 97;
    oversleeps_ = profile_.in_promise && shape == 96;
    if (profile_.in_promise && shape >= 98) {
      race_of_heals();
    } else if (profile_.in_promise && shape == 95) {
      majority_forgets();
    } else if (!profile_.in_promise || shape >= 25) {
      chaos();
    } else if (shape >= 10) {
      line();
    } else if (shape >= 3) {
      cron();
    } else {
      duplicate();
    }
    return std::move(schedule_);
  }

 private:
  // --- Shapes ---

  void chaos() {
    schedule_.servers =
        profile_.one_that_forgets ? 1 : pick({1, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 5, 5});
    base_ttl_ = milliseconds(pick({400, 700, 1500, 4000}));
    span_ = base_ttl_ * static_cast<int>(2 + random_.below(3));
    schedule_.calm = span_ + base_ttl_;
    decide_guard();
    mixes_modes_ = random_.chance(400);
    if (profile_.in_promise && random_.chance(120)) schedule_.keys = 2;
    add_sessions();
    if (schedule_.keys == 1 && extra_.chance(200)) let_the_newest_win();
    add_machines();
    add_paths(/*may_straggle=*/true);
    add_mishaps();
    finish();
  }

  /// A server loses a lease, two rounds of extending find that, and somebody releases it while both
  /// give it back to the server.
  void race_of_heals() {
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
    // What a new process asks has been read three delays later, and what it asks then five.
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

  /// Two of three servers forget a lease that nobody extends, and somebody comes who wants the lock
  /// for a shorter while.
  void majority_forgets() {
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

  SessionPlan race_session(Duration start) {
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

  /// Of those who wait some may be killed or stopped, hosts may be cut off from so many servers
  /// that no quorum is left to them, and some may not be told; but the servers are well.
  void line() {
    schedule_.shape = Schedule::Shape::line;
    schedule_.servers = pick({1, 3, 3, 3, 5});
    base_ttl_ = milliseconds(pick({700, 1500, 4000}));
    max_ttl_ = base_ttl_;
    hosts_ = 3 + random_.below(3);
    mixes_modes_ = random_.chance(500);
    const std::size_t waiters = random_.chance(100) ? 6 + random_.below(7) : 2 + random_.below(4);
    for (std::size_t i = 0; i < waiters; ++i) schedule_.sessions.push_back(waiter());
    schedule_.bound = hand_over + Duration(base_ttl_) / 50;
    const auto leaves_a_share = [](const SessionPlan& plan) {
      return plan.mode.shared && plan.expire_in > Duration::zero();
    };
    if (std::ranges::any_of(schedule_.sessions, leaves_a_share)) schedule_.bound += standby_delay;
    disturb_waiters();
    add_machines();
    add_paths(/*may_straggle=*/false);
    configure_all();
    schedule_.calm = Duration(base_ttl_) * 3;
  }

  SessionPlan waiter() {
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

  /// How long the others may be held up by it is part of the promise.
  void disturb_waiters() {
    SessionPlan& victim = schedule_.sessions[random_.below(schedule_.sessions.size())];
    const Duration when = random_.between(victim.start, victim.start + Duration(base_ttl_));
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
        return add_to_queue(Kind::lose_marker, when, 0);
      case 9:
        return add_to_queue(Kind::inspect, when, random_.below(hosts_));
      case 10:
        return add_impatient_writer();
      default:
        return;
    }
  }

  /// Between two readers one comes who wants the lock alone, and gives up while the first reads.
  void add_impatient_writer() {
    schedule_.sessions.resize(2);
    hold_for(Duration(base_ttl_) * 2);
    SessionPlan& behind = schedule_.sessions.back();
    schedule_.sessions.front().mode.shared = behind.mode.shared = true;
    behind.mode.slots = 0;
    behind.start = Duration(base_ttl_) / 4;
    behind.wait.wait.reset();
    SessionPlan writer = waiter();
    writer.mode = Mode{};
    writer.start = behind.start - milliseconds(50);
    writer.wait.wait = random_.between(milliseconds(100), Duration(base_ttl_));
    schedule_.sessions.push_back(writer);
  }

  void add_to_queue(Kind kind, Duration when, std::size_t host) {
    Mishap mishap;
    mishap.kind = kind;
    mishap.at = when;
    mishap.host = host;
    schedule_.mishaps.push_back(mishap);
  }

  void keep_away(std::size_t host, Duration until) {
    for (SessionPlan& plan : schedule_.sessions) {
      if (plan.host != host) continue;
      plan.undisturbed = false;
      plan.away_until = until;
    }
  }

  /// One or several of them stand still, or have no quorum.
  void disturb_hosts(Kind kind, Duration when) {
    const std::size_t number = random_.chance(300) ? 2 + random_.below(hosts_ - 2) : 1;
    const std::size_t first = random_.below(hosts_);
    for (std::size_t i = 0; i < number; ++i) {
      Mishap mishap;
      mishap.kind = kind;
      mishap.host = (first + i) % hosts_;
      mishap.at = when;
      mishap.span = random_.between(Duration(base_ttl_) / 10, Duration(base_ttl_) * 3 - when);
      // Those servers that are left to it call it in vain.
      const std::size_t cut_off = kind == Kind::pause ? 1 : schedule_.servers / 2 + 1;
      for (mishap.server = 0; mishap.server < cut_off; ++mishap.server)
        schedule_.mishaps.push_back(mishap);
      keep_away(mishap.host, mishap.at + mishap.span);
      schedule_.bound += of_one_host;
    }
    schedule_.bound += base_ttl_ + milliseconds(1000);
  }

  /// While somebody holds the lock for so long that all others have looked again since.
  void lose_power() {
    const Duration when = random_.between(Duration(base_ttl_) * 6 / 10, Duration(base_ttl_));
    const Duration looked = when + base_ttl_ + looks_of_three;
    schedule_.sessions.resize(std::min<std::size_t>(schedule_.sessions.size(), 4));
    hold_for(looked + random_.between(Duration::zero(), 2 * Duration(base_ttl_)));
    add_to_queue(Kind::power_loss, when, 0);
    for (std::size_t host = 0; host < hosts_; ++host) keep_away(host, looked);
  }

  void hold_for(Duration span) {
    SessionPlan& holder = schedule_.sessions.front();
    holder.start = Duration::zero();
    holder.mode = Mode{};
    holder.work = span;
    for (SessionPlan& plan : schedule_.sessions) plan.start += milliseconds(20);
    holder.start = Duration::zero();
  }

  /// Some users may not PUBLISH, or not SUBSCRIBE. Who is not told looks by itself, and of such a
  /// one that was killed the others learn by the end of its entry.
  void forbid_notifications() {
    const std::size_t host = random_.below(hosts_);
    schedule_.sessions.resize(std::min<std::size_t>(schedule_.sessions.size(), 4));
    if (random_.chance(500)) {
      schedule_.mute_hosts.push_back(host);
      if (random_.chance(300)) add_mute_reader(host);
      schedule_.bound += looks_of_three + milliseconds(1000);
      return;
    }
    schedule_.deaf_hosts.push_back(host);
    schedule_.bound += max_unnotified_poll_interval;
    hold_for(random_.between(seconds(3), seconds(5)));
    SessionPlan& victim = schedule_.sessions[1];
    victim.host = host;
    if (random_.chance(500)) return;
    victim.dies_at = random_.between(victim.start, victim.start + milliseconds(2500));
    victim.undisturbed = false;
    keep_nothing();
  }

  /// Who is told of an end that came nearer may be the one that dies.
  void keep_nothing() {
    for (SessionPlan& plan : schedule_.sessions) plan.expire_in = Duration::zero();
  }

  /// Who waits to have the lock alone does not lose its place to a reader that cannot tell it
  /// anything.
  void add_mute_reader(std::size_t host) {
    schedule_.sessions.resize(2);
    hold_for(random_.between(seconds(3), seconds(5)));
    schedule_.sessions[0].mode.shared = true;
    schedule_.sessions[1].mode = Mode{};
    schedule_.sessions[1].wait.wait.reset();
    for (SessionPlan& plan : schedule_.sessions) plan.host = (host + 1) % hosts_;
    for (std::size_t i = 0; i < 2; ++i) {
      SessionPlan reader = waiter();
      reader.mode.shared = true;
      reader.mode.slots = 0;
      reader.host = host;
      reader.start =
          schedule_.sessions[1].start + random_.between(milliseconds(100), milliseconds(2500));
      schedule_.sessions.push_back(reader);
    }
  }

  Mode any_mode() {
    Mode mode;
    if (!mixes_modes_ || random_.chance(500)) return mode;
    mode.shared = true;
    if (random_.chance(500)) mode.slots = 1 + random_.below(3);
    return mode;
  }

  void cron() {
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

  void duplicate() {
    schedule_.shape = Schedule::Shape::duplicate;
    schedule_.servers = 1 + random_.below(3);
    schedule_.introduces_itself = random_.chance(500);
    base_ttl_ = milliseconds(1500);
    max_ttl_ = base_ttl_;
    schedule_.sessions.push_back(session(Duration::zero()));
    hosts_ = 1;
    schedule_.sessions.front().host = 0;
    add_machines();
    add_paths(/*may_straggle=*/false);
    finish();
    schedule_.configured.push_back(random_.below(schedule_.servers));
    // Taken away between the two questions, only the server's name tells that it is the same.
    if (!schedule_.introduces_itself || random_.chance(300)) return;
    const Duration when = schedule_.sessions.front().start +
                          random_.between(Duration::zero(), Duration(milliseconds(12)));
    for (std::size_t i = 0; i < 6; ++i)
      add_to_queue(Kind::break_lock, when + i * std::chrono::microseconds(300), 0);
  }

  // --- Parts ---

  void decide_guard() {
    const bool can_guard = schedule_.servers >= min_guarded_servers;
    const bool unguarded = profile_.wipes_unguarded || profile_.one_that_forgets;
    wipes_ = unguarded || (can_guard && profile_.in_promise && random_.chance(200));
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

  void add_sessions() {
    hosts_ = 2 + random_.below(3);
    const std::size_t sessions = 1 + random_.below(3);
    for (std::size_t i = 0; i < sessions; ++i)
      schedule_.sessions.push_back(session(random_.between(Duration::zero(), span_)));
    // Somebody comes when all is over, and must get it.
    SessionPlan last =
        session(schedule_.calm + random_.between(Duration::zero(), Duration(base_ttl_)));
    last.wait.wait.reset();
    last.dies_at.reset();
    last.first_key = 0;
    last.keys = last.style == SessionPlan::Style::handed ? 1 : schedule_.keys;
    schedule_.sessions.push_back(last);
  }

  /// Those that wait for the lock alone supersede each other, and some more of them come at about
  /// the same time.
  void let_the_newest_win() {
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
    for (SessionPlan& plan : schedule_.sessions) {
      const bool waits = !plan.wait.wait || *plan.wait.wait > Duration::zero();
      plan.supersedes = waits && !plan.mode.shared;
    }
  }

  SessionPlan session(Duration start) {
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
    // Of a `run` it must be refused.
    const unsigned by_hand = plan.style == SessionPlan::Style::run         ? 100
                             : plan.style == SessionPlan::Style::while_pid ? 300
                                                                           : 700;
    if (random_.chance(by_hand)) {
      plan.hand_release_at = random_.between(Duration::zero(), ttl);
    }
    return plan;
  }

  void choose_keys(SessionPlan& plan) {
    const bool may_want_both = plan.style != SessionPlan::Style::handed;
    if (may_want_both && random_.chance(500)) {
      plan.keys = schedule_.keys;
    } else {
      plan.first_key = random_.below(schedule_.keys);
    }
  }

  void add_machines() {
    for (std::size_t i = 0; i < schedule_.servers; ++i)
      schedule_.server_plans.push_back(machine(milliseconds(200)));
    for (std::size_t i = 0; i < hosts_; ++i)
      schedule_.hosts.push_back(machine(wild_ ? an_hour : milliseconds(100)));
  }

  MachinePlan machine(Milliseconds offset) {
    MachinePlan plan;
    plan.clock_origin = random_.between(Duration(seconds(1)), Duration(seconds(1'000'000)));
    // The ends are where something can go wrong.
    const std::int64_t most = profile_.rate_ppm;
    plan.ppm =
        std::array{-most, most, std::int64_t{0}, random_.between(-most, most)}[random_.below(4)];
    plan.wall_offset = Milliseconds(random_.between(-offset.count(), offset.count()));
    return plan;
  }

  void add_paths(bool may_straggle) {
    const bool slow = random_.chance(200);
    for (std::size_t i = 0; i < hosts_ * schedule_.servers; ++i) {
      PathPlan path;
      path.delay = random_.between(Duration(std::chrono::microseconds(50)),
                                   slow ? Duration(milliseconds(3)) : Duration(milliseconds(1)));
      path.jitter = random_.between(Duration::zero(), path.delay);
      if (may_straggle && random_.chance(250))
        path.stragglers = static_cast<unsigned>(5 + random_.below(50));
      schedule_.paths.push_back(path);
    }
  }

  void add_mishaps() {
    const std::size_t count = random_.chance(200) ? 0 : 1 + random_.below(5);
    for (std::size_t i = 0; i < count; ++i) schedule_.mishaps.push_back(mishap(any_kind()));
    if (random_.chance(150)) add_stumble();
    if (wipes_) {
      for (std::size_t i = 1 + random_.below(3); i > 0; --i)
        schedule_.mishaps.push_back(mishap(Kind::wipe));
    }
    if (profile_.in_promise && random_.chance(40)) add_address_on_the_move();
    if (moves_address_) add_address_on_the_move();
    if (oversleeps_) have_first_oversleep();
    if (profile_.in_promise && random_.chance(15))
      schedule_.mishaps.push_back(mishap(Kind::spoil_counter));
    if (profile_.in_promise && random_.chance(25))
      schedule_.mishaps.push_back(mishap(Kind::newer_waiter));
    if (profile_.servers_jump_forward) {
      for (std::size_t i = 0; i < schedule_.servers; ++i) {
        Mishap jump = mishap(Kind::step_server_wall);
        jump.step =
            std::chrono::duration_cast<Milliseconds>(random_.between(base_ttl_ / 5, 3 * base_ttl_));
        schedule_.mishaps.push_back(jump);
      }
    }
  }

  /// Whose host stands still from the votes on until the lease is over has no lease.
  void have_first_oversleep() {
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

  /// Where clients can tell one server from another, it harms nobody.
  void add_address_on_the_move() {
    if (schedule_.servers < 2) return;
    Mishap move = mishap(Kind::move_address);
    move.other = (move.server + 1 + random_.below(schedule_.servers - 1)) % schedule_.servers;
    if (moves_address_) move_between_grant_and_raise(move);
    schedule_.mishaps.push_back(move);
  }

  /// The server is much nearer than the others, so it has granted long before one of them decides.
  void move_between_grant_and_raise(Mishap& move) {
    const SessionPlan& victim = schedule_.sessions.front();
    for (std::size_t i = 0; i < schedule_.servers; ++i) {
      PathPlan& path = schedule_.paths[victim.host * schedule_.servers + i];
      path = {
          i == move.server ? Duration(std::chrono::microseconds(300)) : Duration(milliseconds(3)),
          Duration(std::chrono::microseconds(100)), 0};
    }
    move.at = victim.start + random_.between(Duration(milliseconds(3)), Duration(milliseconds(20)));
    move.span = std::min(Duration(base_ttl_), schedule_.calm - move.at);
  }

  Kind any_kind() {
    constexpr std::array kinds{
        Kind::crash,   Kind::freeze,           Kind::freeze,           Kind::outage,
        Kind::outage,  Kind::isolate_host,     Kind::isolate_server,   Kind::cut,
        Kind::pause,   Kind::step_client_wall, Kind::step_server_wall, Kind::break_lock,
        Kind::foreign, Kind::foreign_for_ever, Kind::flush_scripts,    Kind::refuse,
        Kind::refuse,  Kind::inspect};
    const Kind kind = kinds[random_.below(kinds.size())];
    if (kind == Kind::step_server_wall && !servers_step_back_) return Kind::outage;
    // Other libraries know no restart guard.
    const bool is_foreign = kind == Kind::foreign || kind == Kind::foreign_for_ever;
    return is_foreign && wipes_ ? Kind::outage : kind;
  }

  /// While an attempt or an extension of it is under way, if it got the lock at once.
  Duration when_asked(const SessionPlan& victim) {
    const Duration extensions =
        random_.chance(500) ? Duration::zero() : Duration(victim.ttl) / 3 * random_.between(1, 3);
    return std::min(
        victim.start + extensions + random_.between(Duration::zero(), Duration(milliseconds(8))),
        schedule_.calm);
  }

  /// A host stands still in the midst of a round, and nothing gets through to it from then on.
  void add_stumble() {
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

  Mishap mishap(Kind kind) {
    Mishap mishap;
    mishap.kind = kind;
    // Half of them while somebody's round is under way, where the windows are narrow.
    mishap.at = random_.between(Duration::zero(), span_);
    if (random_.chance(500)) {
      const SessionPlan& victim = schedule_.sessions[random_.below(schedule_.sessions.size() - 1)];
      mishap.at = when_asked(victim);
      mishap.host = victim.host;
    } else {
      mishap.host = random_.below(hosts_);
    }
    mishap.server = random_.below(schedule_.servers);
    const Duration longest = random_.chance(500) ? base_ttl_ / 4 : 3 * base_ttl_ / 2;
    mishap.span =
        std::min(random_.between(Duration(milliseconds(1)), longest), schedule_.calm - mishap.at);
    if (kind == Kind::step_client_wall)
      mishap.step = wild_ ? Milliseconds(random_.between(-an_hour.count(), an_hour.count()))
                          : milliseconds(0);
    // Back only: forward, keys end too early.
    if (kind == Kind::step_server_wall) mishap.step = Milliseconds(random_.between(-1000, 0));
    mishap.flag = random_.chance(500);
    if (kind == Kind::refuse) mishap.refusal = any_refusal();
    return mishap;
  }

  Refusal any_refusal() {
    constexpr std::array refusals{Refusal::loading,   Refusal::busy,      Refusal::read_only,
                                  Refusal::read_only, Refusal::no_rights, Refusal::misconf,
                                  Refusal::oom,       Refusal::oom};
    return refusals[random_.below(refusals.size())];
  }

  void configure_all() {
    for (std::size_t i = 0; i < schedule_.servers; ++i) schedule_.configured.push_back(i);
  }

  void finish() {
    configure_all();
    Duration bound = milliseconds(4000) + (schedule_.restart_guard > Duration::zero()
                                               ? schedule_.restart_guard + seconds(2)
                                               : Duration::zero());
    Duration longest = max_ttl_;
    for (const SessionPlan& plan : schedule_.sessions) {
      longest = std::max<Duration>({longest, plan.ttl, plan.hand_ttl});
      bound += plan.server_timeout;
    }
    for (const Mishap& mishap : schedule_.mishaps)
      bound += std::max(Duration::zero(), Duration(-mishap.step));
    schedule_.progress_from = schedule_.calm + calming_time;
    schedule_.bound = bound + longest + longest / 10;
  }

  std::size_t pick(std::initializer_list<int> choices) {
    return static_cast<std::size_t>(*(choices.begin() + random_.below(choices.size())));
  }

  const Profile& profile_;
  Random random_;
  Random extra_;  ///< for what came later, so that the rest of a seed's schedule stays as it was
  Schedule schedule_;
  std::size_t hosts_ = 1;
  Milliseconds base_ttl_{};
  Milliseconds max_ttl_{};
  Duration span_{};  ///< of the chaos
  bool wipes_ = false;
  bool oversleeps_ = false;     ///< so that it has no lease when it wakes up
  bool moves_address_ = false;  ///< while somebody acquires
  bool mixes_modes_ = false;
  bool wild_ = false;  ///< clients' wall clocks are anywhere
  bool servers_step_back_ = true;
};

}  // namespace

Duration Schedule::work() const {
  Duration all{};
  for (const SessionPlan& plan : sessions) all += plan.work + plan.ttl;
  return all;
}

Schedule draw(const Profile& profile, std::uint64_t seed) {
  return profile.nightly ? draw_nightly(profile, seed) : Draw(profile, seed).make();
}

std::string describe(const Schedule& schedule) {
  constexpr std::array shapes{"chaos", "cron", "line", "a server given twice", "nightly"};
  return fmt::format(
      "{}: {} servers, {} hosts, {} sessions, {} mishaps, restart guard {:.0f} ms, calm from "
      "{:.0f} ms",
      shapes[static_cast<std::size_t>(schedule.shape)], schedule.servers, schedule.hosts.size(),
      schedule.sessions.size(), schedule.mishaps.size(), in_ms(schedule.restart_guard),
      in_ms(schedule.calm));
}

std::string describe(const Mishap& mishap) {
  const std::string server = fmt::format("s{}", mishap.server + 1);
  const std::string host = fmt::format("host {}", mishap.host + 1);
  const std::string span = fmt::format("for {:.1f} ms", in_ms(mishap.span));
  switch (mishap.kind) {
    case Kind::crash:
      return fmt::format("{} is down {} and keeps its data", server, span);
    case Kind::wipe:
      return fmt::format("{} is down {} and forgets everything", server, span);
    case Kind::freeze:
      return fmt::format("{} stands still {}", server, span);
    case Kind::flush_scripts:
      return fmt::format("{} forgets all scripts", server);
    case Kind::outage:
      return fmt::format("{} and {} are apart {}", host, server, span);
    case Kind::isolate_host:
      return fmt::format("{} is cut off {}", host, span);
    case Kind::isolate_server:
      return fmt::format("{} is cut off {}", server, span);
    case Kind::cut:
      return fmt::format("a connection to {} breaks, what is under way {}", server,
                         mishap.flag ? "arrives" : "is lost");
    case Kind::pause:
      return fmt::format("{} stands still {}", host, span);
    case Kind::step_client_wall:
      return fmt::format("the wall clock of {} jumps by {} ms", host, mishap.step.count());
    case Kind::step_server_wall:
      return fmt::format("the wall clock of {} jumps by {} ms", server, mishap.step.count());
    case Kind::break_lock:
      return fmt::format("somebody on {} breaks the lock{}", host,
                         mishap.flag ? " if its fence is another" : "");
    case Kind::foreign:
      return fmt::format("a foreign client tries {}", span);
    case Kind::foreign_for_ever:
      return fmt::format("a foreign client tries without an expiry{}, {}",
                         mishap.flag ? ", with a hash" : "", span);
    case Kind::refuse: {
      constexpr std::array refusals{"nothing",           "for it loads",
                                    "for it is busy",    "for want of rights",
                                    "writes, read-only", "writes, for it cannot save",
                                    "what needs memory"};
      return fmt::format("{} refuses {}: {}", server, span,
                         refusals[static_cast<std::size_t>(mishap.refusal)]);
    }
    case Kind::power_loss:
      return "all servers lose power and are back";
    case Kind::cut_subscriptions:
      return fmt::format("the subscriptions of {} break", host);
    case Kind::lose_marker:
      return "a shared lock's key is lost everywhere";
    case Kind::inspect:
      return fmt::format("somebody on {} asks who has the lock", host);
    case Kind::evict:
      return fmt::format("{} loses the lock's key", server);
    case Kind::move_address:
      return fmt::format("the address of {} leads to s{} {}", server, mishap.other + 1, span);
    case Kind::spoil_counter:
      return fmt::format("the fence counter of {} is too large {}", server, span);
    case Kind::newer_waiter:
      return fmt::format("a waiter of a newer version stands in the queue {}", span);
  }
  return {};
}

}  // namespace redlock::sim
