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
  /// A server loses a lease, two rounds of extending find that, and somebody releases it while both
  /// give it back to the server.
  void race_of_heals();
  /// Two of three servers forget a lease that nobody extends, and somebody comes who wants the lock
  /// for a shorter while.
  void majority_forgets();
  SessionPlan race_session(Duration start);
  /// Of those who wait some may be killed or stopped, hosts may be cut off from so many servers
  /// that no quorum is left to them, and some may not be told; but the servers are well.
  void line();
  SessionPlan waiter();
  /// How long the others may be held up by it is part of the promise.
  void disturb_waiters();
  /// Most waiters are on one host, which stands still while the first and the last waiter are its
  /// own. Between them is one of another host, which must get the lock soon.
  void stop_host_of_most();
  /// For how long the lock may be free when all is well with who is next.
  [[nodiscard]] Duration bound_of_hand_over() const;
  /// Between two readers one comes who wants the lock alone, and gives up while the first reads.
  void add_impatient_writer();
  void add_to_queue(Kind kind, Duration when, std::size_t host);
  void keep_away(std::size_t host, Duration until);
  /// One or several of them stand still, or have no quorum.
  void disturb_hosts(Kind kind, Duration when);
  /// While somebody holds the lock for so long that all others have looked again since.
  void lose_power();
  void hold_for(Duration span);
  /// Some users may not PUBLISH, or not SUBSCRIBE. Who is not told looks by itself, and of such a
  /// one that was killed the others learn by the end of its entry.
  void forbid_notifications();
  /// Who is told of an end that came nearer may be the one that dies.
  void keep_nothing();
  /// Who waits to have the lock alone does not lose its place to a reader that cannot tell it
  /// anything.
  void add_mute_reader(std::size_t host);
  Mode any_mode();
  void cron();
  void duplicate();

  // --- Votes of several nodes: draw_nodes.cpp ---

  [[nodiscard]] bool has_nodes() const { return profile_.votes != VoteKind::server; }
  /// Behind the machines of the votes.
  void add_nodes();
  /// Slots move and masters change, and whatever else goes wrong may concern any node.
  void add_node_changes();
  Kind any_node_change();
  /// A node of the first vote gives way to another.
  void change_nodes_in_line(Duration when);

  // --- Parts: draw_parts.cpp ---

  void decide_guard();
  void add_sessions();
  /// Those that wait for the lock alone supersede each other, and some more of them come at about
  /// the same time.
  void let_the_newest_win();
  /// More sessions wait for a slot than a script looks at, and behind them some for no slot.
  void add_crowd();
  SessionPlan session(Duration start);
  void choose_keys(SessionPlan& plan);
  void add_machines();
  MachinePlan machine(Milliseconds offset);
  void add_paths(bool may_straggle);
  void add_mishaps();
  /// Some sessions also have runs that servers remember, some users may not PUBLISH or SUBSCRIBE.
  void spoil_helper_keys();
  /// Whose host stands still from the votes on until the lease is over has no lease.
  void have_first_oversleep();
  /// Where clients can tell one server from another, it harms nobody.
  void add_address_on_the_move();
  /// The server is much nearer than the others, so it has granted long before one of them decides.
  void move_between_grant_and_raise(Mishap& move);
  Kind any_kind();
  /// While an attempt or an extension of it is under way, if it got the lock at once.
  Duration when_asked(const SessionPlan& victim);
  /// A host stands still in the midst of a round, and nothing gets through to it from then on.
  void add_stumble();
  Mishap mishap(Kind kind);
  Refusal any_refusal();
  void configure_all();
  void finish();
  std::size_t pick(std::initializer_list<int> choices);

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

}  // namespace redlock::sim
