#pragma once

#include <initializer_list>

#include "schedule.hpp"
#include "virtual/random.hpp"

namespace redlock::sim {

/// Draws one schedule from a seed, other than a nightly one.
class Draw {
 public:
  Draw(const Profile& profile, std::uint64_t seed)
      : profile_(profile), random_(seed), extra_(seed ^ 0x5059) {}

  Schedule make();

 private:
  using Kind = Mishap::Kind;

  // --- Shapes: draw_shapes.cpp ---

  void chaos();
  /// A server loses a lease, two rounds of extending find that, and another process releases the
  /// lease while both heal the server.
  void race_of_heals();
  /// Two of three servers forget a lease that is not extended, and another session wants the lock
  /// for a shorter ttl.
  void majority_forgets();
  SessionPlan race_session(Duration start);
  /// Some waiters may be killed or stopped, hosts may lose the quorum, and some waiters may not be
  /// notified; but the servers are well.
  void queue();
  SessionPlan waiter();
  /// The promise limits how long that may delay the other waiters.
  void disturb_waiters();
  /// Most waiters are on one host, the first and the last among them, and this host stands still.
  /// Between them is a waiter of another host, which must get the lock soon.
  void stop_host_of_most();
  /// The first waiter is notified while its host stands still, then all servers' clocks are set
  /// back by far more than it may take, and it never comes back.
  void set_clocks_back();
  /// From the first second on, for twenty; then all is calm.
  void stand_still(std::size_t host);
  /// How long the lock may be free when the next waiter is well.
  [[nodiscard]] Duration bound_of_hand_over() const;
  /// A writer is queued between two readers, and gives up while the first one reads.
  void add_writer_that_gives_up();
  void add_to_queue(Kind kind, Duration when, std::size_t host);
  void keep_away(std::size_t host, Duration until);
  /// One or several hosts stand still, or lose the quorum.
  void disturb_hosts(Kind kind, Duration when);
  /// While a session holds the lock for so long that all waiters poll before it ends.
  void lose_power();
  void hold_for(Duration span);
  /// The users of a host may not PUBLISH, or not SUBSCRIBE. A waiter that is not notified polls. If
  /// it is killed, the others notice when its entry ends.
  void forbid_notifications();
  /// Drops --min-hold from all sessions: the waiter that is notified that a lease ends sooner may
  /// be the one that dies.
  void keep_nothing();
  /// A writer keeps its position when a reader behind it cannot notify it.
  void add_mute_reader(std::size_t host);
  Mode any_mode();
  void cron();
  void duplicate();

  // --- Votes of several nodes: draw_nodes.cpp ---

  [[nodiscard]] bool has_nodes() const { return profile_.votes != VoteKind::server; }
  /// Added after the machines of the votes.
  void add_nodes();
  /// Slots move and masters change, and every other mishap may concern any node.
  void add_node_changes();
  Kind any_node_change();
  /// The slot of the first vote moves, or its master changes.
  void change_nodes_of_queue(Duration when);
  /// The slots of all clusters are on their way for longer than a ttl without any key, while a
  /// session holds the lock, one runs below it and others wait.
  void keep_through_a_stall();

  // --- Parts: draw_parts.cpp ---

  void decide_guard();
  void add_sessions();
  /// Writers supersede each other, and some more writers come at about the same time.
  void let_the_newest_win();
  /// One of these stands still for longer than its queue entry lives, and wakes when the others
  /// have ended.
  void have_one_sleep_through_it();
  /// More sessions wait for a slot than a script examines, and some without a slot wait behind
  /// them.
  void add_crowd();
  SessionPlan session(Duration start);
  void choose_keys(SessionPlan& plan);
  void add_machines();
  MachinePlan machine(Milliseconds offset);
  void add_paths(bool may_straggle);
  void add_mishaps();
  /// Also, servers record the runs of some sessions, and some users may not PUBLISH or SUBSCRIBE.
  void spoil_helper_keys();
  /// Servers refuse single commands for want of a right.
  void deny_commands();
  /// Most sessions want a slot, and most servers lose their tables of slots at a time.
  void lose_slots();
  /// Other processes use the leases of most sessions, some more sessions want the lock, and servers
  /// may lose the record of a lease.
  void add_users();
  /// Most sessions want some of several slots, and some do not wait behind many.
  void take_slots();
  /// Most sessions want slots by name: hosts know some of the names, in an order of their own, and
  /// some sessions want certain ones. `may_number`: and a few want slots by number.
  void name_slots(bool may_number);
  /// Its host stands still from the votes until the lease expires, so it has no lease.
  void have_first_oversleep();
  /// This is harmless where clients can tell one server from another.
  void add_address_on_the_move();
  /// The server is much nearer than the others, so it grants long before the round is decided.
  void move_between_grant_and_raise(Mishap& move);
  Kind any_kind();
  /// A time when its attempt or an extension is under way, if it got the lock at once.
  Duration when_asked(const SessionPlan& victim);
  /// A host stands still during a round, and is isolated from then on.
  void add_stumble();
  Mishap mishap(Kind kind);
  Refusal any_refusal();
  void configure_all();
  void finish();
  std::size_t pick(std::initializer_list<int> choices);

  const Profile& profile_;
  Random random_;
  Random extra_;  ///< for later additions, so that the rest of a seed's schedule does not change
  Schedule schedule_;
  std::size_t hosts_ = 1;
  Milliseconds base_ttl_{};
  Milliseconds max_ttl_{};
  Duration span_{};  ///< of the chaos
  bool wipes_ = false;
  bool oversleeps_ = false;     ///< the first session has no lease when it wakes up
  bool moves_address_ = false;  ///< while a session acquires
  bool mixes_modes_ = false;
  bool wild_ = false;  ///< clients' wall clocks are anywhere
  bool servers_step_back_ = true;
};

}  // namespace redlock::sim
