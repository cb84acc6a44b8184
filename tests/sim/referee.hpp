#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/decision.hpp"
#include "core/helper_keys.hpp"
#include "core/lease.hpp"
#include "engine/held_lease.hpp"
#include "engine/lease_keeper.hpp"
#include "history.hpp"
#include "support/number.hpp"
#include "virtual/server.hpp"

namespace redlock::sim {

/// The slots, by name or number.
inline std::set<std::string> slots_of(const Hold& hold) {
  std::set<std::string> slots(hold.slot_names.begin(), hold.slot_names.end());
  for (const std::size_t slot : hold.slots) slots.insert(std::to_string(slot));
  return slots;
}

/// Whether the pool of this mode has the slot.
inline bool is_in(const Mode& mode, const std::string& slot) {
  if (!mode.only.empty()) return std::ranges::find(mode.only, slot) != mode.only.end();
  return whole_number<std::size_t>(slot).value_or(mode.slots) < mode.slots;
}

struct Violation {
  std::string rule;  ///< one word: exclusion, fence, resurrection, …
  std::string text;
};

/// Sees everything: the effect of the scripts on each server, and the beliefs of each holder. It
/// has rules about what must never happen, and no knowledge of the product. The rules, by their
/// violations:
///
///   exclusion     two leases that exclude each other are valid at once, each by its holder's own
///                 clock: an exclusive one and any other, two in one slot, or one in a slot with
///                 a name and one in a slot with a number. A foreign holder's
///                 lease counts as exclusive. A lease that is left to expire (--min-hold) counts
///                 for as long as its holder asked for. A lease of which copies were removed by
///                 force, or of which copies were released by hand and whose holder was killed or
///                 left them to users, counts as long as its other copies keep a quorum from
///                 everyone else. A user of a lease counts until it stops
///   grant         a granted lease has expired already, or no server knows of it
///   quorum        a lease does not have the votes of enough different servers
///   fence         fences do not rise in the order in which quorums were complete, whenever each
///                 holder learns of its grant: the fence of an exclusive lease is above all before
///                 it, that of a shared one above all exclusive ones before it, that of one in a
///                 slot above those before it in the slot. Or a lease is granted although no quorum
///                 knows of its fence, or with a fence below those of a quorum of its votes. Or a
///                 server is healed without the lease's fence
///   resurrection  a lease comes back after its end: its key is set again where it was gone, it is
///                 extended after it was broken, or a server is healed before a quorum extended the
///                 lease in the same round
///   theft         a script changes what belongs to another client
///   shortening    an extension brings an end nearer
///   expiry        one of our keys has no expiry, or a marker expires before a share
///   ghost         a server keeps what was undone or released, although it read everything, unless
///                 it read several attempts after their ttl, or its clock was set back since then.
///                 Or it keeps a grant that the process knew of, when the process and those that
///                 undo for it have ended
///   tombstone     the keeper of a lease that was released by hand learns something else; or a
///                 server that knows of the release is healed
///   deadline      a holder, or a nested run, relies on its lease for longer than a quorum of
///                 servers, by their clocks, would keep it
///   queue         a waiter draws a ticket that is not behind those of which a quorum of servers
///                 told it. An undo does not put the waiter back at its position. It stays queued
///                 after two attempts in a row without a quorum of answers. Or a server keeps it in
///                 the queue although it is gone and the server read everything
///   trouble       a round of extending fails although every server answered
///   slot          an extension counts for a slot that the lease does not have at that server; or a
///                 server keeps another slot for it than the one that counts, although the holder
///                 knew when it had the lock
///   superseded    a waiter gives up for a newer one that no server knew of, or although a quorum
///                 told it of none. Or it is granted the lock by an attempt that began after a
///                 quorum of servers knew of a newer one, or it keeps waiting
///   dismissed     a waiter is sent away that came later, or that no server was told to send away.
///   Or
///                 it is granted the lock by an attempt that began after a quorum of servers were
///                 told, or it keeps waiting
///   node          a script runs at a node of a vote for a key that another node of it has
///   stop          a holder learns of a stop request for another lease than its own, or is to make
///                 room for a run that is not newer; or a lease that was valid all the while is
///                 said to be gone
///   inspect       a lease that was valid all the while is shown as free, or as another's
///
/// The world adds what only it can see: progress, order, delay (a waiter that could enter is let in
/// by a timer), full (a waiter finds a bounded queue full in which fewer others wait), and kept (a
/// lease ends before its holder releases it, where that must not be).
class Referee final : public Watcher {
 public:
  /// `judged`: the only rule that is checked; empty: all.
  Referee(Timeline& timeline, History& history, Resource resource, std::size_t quorum,
          std::string_view judged)
      : timeline_(timeline),
        history_(history),
        judged_(judged),
        resource_(std::move(resource)),
        owner_(HelperKeys(resource_).owner()),
        readers_(HelperKeys(resource_).readers()),
        slots_(HelperKeys(resource_).slots()),
        queue_(HelperKeys(resource_).queue()),
        waiting_(HelperKeys(resource_).waiters()),
        counter_(HelperKeys(resource_).fence()),
        tombstones_(HelperKeys(resource_).released()),
        quorum_(quorum) {}

  /// Adds a server. To be called for each before anything happens.
  void add(Server& server) { servers_.push_back(&server); }

  // Actions of the servers: referee_scripts.cpp.
  void before(const Run& run) override;
  void after(const Run& run, const Reply& reply) override;
  void saw_end(Server& server, Process& process, bool read_all) override;
  void broke(Server& server, Process& process) override {
    broken_links_.insert({&process, &server});
  }
  void redirected(Server& server, Process& process, const Reply& error) override;
  void moved(Server& from, Server& to) override;
  /// `heir` goes on undoing what `process` could not.
  void inherits(const Process& heir, const Process& process) { heirs_[&heir] = &process; }
  /// The key of a shared lock is evicted.
  void lose_marker(Server& server);
  /// What an inspection that began then shows of the lock.
  void inspected(const Inspection& inspection, Duration began);
  /// A process asked the holder of this lease to stop, from then on, and learned whether it is
  /// gone.
  void asked(const LeaseId& id, bool is_gone, Duration began);
  /// A server forgot everything, also its tombstones.
  void lost_data() { data_lost_ = true; }

  // Requests of processes and the replies to them: referee_processes.cpp.
  /// `ticket`: that it shows; `queues`: and with which it is to be queued.
  void attempts(const Process& process, const Token& token, std::optional<Ticket> ticket,
                bool queues);
  void gets_answer(const Process& process, const Token& token, const QueueStatus& queue);
  void gets_grant(const Process& process, const Token& token, std::size_t server, const Hold& hold);
  /// It has the lock of its last attempt, and now attempts another one.
  void goes_on(const Process& process) { attempts_[&process].decided = true; }
  /// It releases what it acquired, even if no session ever had it.
  void releases(const Token& token) { facts_[token.secret()].release_requested = true; }
  void gets_notification(const Process& process, std::size_t server, Notification notification);
  void leaves(const std::string& waiter, std::size_t server) {
    left_at_[{waiter, server}] = timeline_.now();
  }
  /// -> when the round began, which identifies it
  Duration begins_to_extend(const Process& process, const Token& token);
  void gets_extension(const Process& process, const Token& token, Duration began,
                      std::size_t server);
  void heals(const Process& process, const Token& token);

  // Reports of the holders.
  void granted(Process& process, const Lease& lease);
  /// `asked`: when the round began, in true time.
  void extended(Process& process, const Token& token, Instant deadline, Duration asked);
  void in_trouble(Process& process, const LeaseInTrouble& trouble);
  void ended(Process& process, const Token& token, const LeaseEnded& end);
  /// It learned of a stop request for the lease with that id.
  void stop_requested(const Process& process, const Token& token, const std::string& id);
  /// It learned that it is to make room for the run with this place.
  void replaced(const Process& process, const Place& newer);
  /// The holder does nothing more under the lease, and now releases it. `expire_in`: no other
  /// client may have the lock for so long.
  void stopped(const Process& process, const Token& token, Duration expire_in = Duration::zero());
  /// SIGKILL: its copies at the servers stay until they expire.
  void killed(const Process& process);
  /// Another process extends the lease as well. Its round may overlap the holder's release, and
  /// heal a server after that.
  void shared(const Token& token) { facts_[token.secret()].shared = true; }
  /// Another process runs under the lease until then.
  void relied_on(const Process& process, const Token& token, Instant deadline);
  /// Other processes may register as users of the lease.
  void hands_over(const Token& token) { facts_[token.secret()].handed_over = true; }
  /// A user of the lease works under it until then, whatever its keeper does.
  void uses(const Process& user, const Token& token, Instant deadline);
  /// The user has ended, or was killed.
  void stops_using(const Process& user, const Token& token);
  /// The same, although its holder has stopped.
  void outlives_holder(Process& process, const Token& token, Instant deadline) {
    facts_[token.secret()].over = false;
    extended(process, token, deadline, timeline_.now());
  }
  /// It has ended, and so has the process that undid for it: every grant it knew of is undone.
  void left_nothing(const Process& process);
  /// The server lost its scripts, and may refuse the next `leave`.
  void lose_scripts(const Server& server) { scripts_lost_ |= std::uint32_t{1} << server.vote(); }
  /// The server denies its clients rights that they have elsewhere: no undo is repeated there.
  void lose_rights(const Server& server) { rights_lost_ |= std::uint32_t{1} << server.vote(); }
  /// From now on the address of `server` leads to `to`. Meanwhile nothing can be undone at
  /// `server`.
  void move_address(const Server& server, const Server& to);
  void released(const Token& token, const ReleaseResult& result);
  /// The process has sent its last request; only the ends of its connections follow.
  void finished(Process& process) { finished_.insert(&process); }

  /// What belongs to no process keeps others out until then.
  void keeps_out_until(Duration when) { orphaned_until_ = std::max(orphaned_until_, when); }

  /// It gave up for a newer waiter.
  void gave_way(const Process& process);
  /// Since when a quorum of servers knows of a newer waiter that supersedes it.
  [[nodiscard]] std::optional<Duration> superseded_since(const Process& process) const;

  /// It gave up because it was dismissed.
  void was_sent_away(const Process& process);
  /// Since when a quorum of servers knows that it is to give up.
  [[nodiscard]] std::optional<Duration> dismissed_since(const Process& process) const;

  // A client of another library.
  void foreign_granted(const std::string& value, Duration until);
  void foreign_ended(const std::string& value);

  void violate(std::string rule, std::string text);
  [[nodiscard]] const std::optional<Violation>& violation() const noexcept { return violation_; }

  /// When the last lease so far, or what killed processes left, ended or will end. Leases of a
  /// process that does not have all of its locks yet count, too, but not for that process.
  [[nodiscard]] Duration busy_until(const Process& but) const;
  /// The last instant so far at which the leases of others kept out a waiter with this mode.
  [[nodiscard]] Duration kept_out_until(const Mode& mode, const Process& process) const;
  /// It may have been released by hand at some server although it is supervised.
  [[nodiscard]] bool may_seem_unsupervised(const Token& token) const {
    const auto found = facts_.find(token.secret());
    return found != facts_.end() &&
           (found->second.released_alone || found->second.released_unrecorded);
  }
  /// An attempt of it that was still under way was broken by force.
  [[nodiscard]] bool was_broken(const Process& process) const;
  [[nodiscard]] std::size_t grants() const noexcept { return grants_; }
  [[nodiscard]] std::size_t scripts() const noexcept { return scripts_; }
  /// How often a waiter asked all servers right after a few of them notified it.
  [[nodiscard]] std::size_t hasty_attempts() const noexcept { return hasty_attempts_; }

 private:
  /// The most servers of a schedule, and one that is configured twice.
  static constexpr std::size_t max_servers = 8;

  struct Votes {
    std::uint32_t servers = 0;  ///< that granted it, one bit each
    std::size_t quorum_at = 0;  ///< number of the script that made them a quorum; 0: none yet
  };

  struct Facts {
    const Process* process = nullptr;  ///< whose attempt it was
    std::string id;                    ///< as servers name it
    bool supervised = false;
    bool granted = false;
    bool over = false;            ///< the holder stopped, or a quorum of servers removed it
    bool left_to_expire = false;  ///< the holder stopped, and released it for a later time
    bool orphaned = false;        ///< the holder was killed
    Duration granted_at{};
    bool shared = false;           ///< another process extends it, too
    bool handed_over = false;      ///< it may have users
    bool gone_everywhere = false;  ///< every server confirmed its release
    Hold hold;
    Fence fence;
    Duration until{};  ///< by the holder's clock, as true time; or when it ended
    std::map<std::set<std::string>, Votes> votes{};  ///< by slots
    std::uint32_t broken = 0;                        ///< servers where it was broken by force
    std::optional<Duration> broken_since;            ///< at a quorum of them
    std::uint32_t released_by_hand = 0;
    // "Alone": by a script that had the lock's key only, in a slot that moves.
    bool released_alone = false;       ///< somewhere by hand: there it has no tombstone
    bool sought_alone = false;         ///< not found somewhere, and the tombstone was not read
    std::uint32_t extended_alone = 0;  ///< servers where its owner record may have expired since
    bool released_unrecorded = false;  ///< by hand, where that record had expired
    std::array<std::optional<Fence>, max_servers> granted_fences{};  ///< by server
    std::array<Fence, max_servers> known_fences{};     ///< to which it raised the server's counter
    std::array<Milliseconds, max_servers> max_ttls{};  ///< requested at the server
    std::array<Duration, max_servers> ends{};  ///< true time until which the server keeps it
    std::array<std::optional<Hold>, max_servers> told_slots{};  ///< as told to the process
    std::set<const Server*> brought_to{};  ///< nodes that got it from the process and kept it
    Duration asked_at{};
    Duration ttl{};
    std::uint32_t told = 0;  ///< servers whose grant reached the process
    bool release_requested = false;
    std::uint32_t undone_elsewhere = 0;  ///< servers whose undos another one may have answered
    std::uint32_t strays = 0;  ///< servers where, as the process knows, it has other slots
  };
  /// A waiter that supersedes older ones.
  struct Superseder {
    const Process* process = nullptr;
    Ticket ticket = 0;
    std::uint32_t servers = 0;        ///< that knew of it as the newest
    std::optional<Duration> since{};  ///< when a quorum of them did
  };
  /// The waiters with this ticket or a smaller one are sent away.
  struct Dismissal {
    Ticket up_to = 0;
    std::uint32_t servers = 0;        ///< that were told
    std::optional<Duration> since{};  ///< when a quorum of them was
  };
  struct Attempts {
    std::string token;
    std::vector<Ticket> max_tickets;  ///< of the queue of each server that answered; 0: empty
    std::size_t outages = 0;          ///< in a row, before this one
    bool has_ticket = false;          ///< it showed one to the servers by then
    std::size_t without_newer = 0;    ///< answers that told of no newer waiter
    /// It has the lock of its last attempt and attempts the next one; grants that arrive now are
    /// not undone.
    bool decided = false;
  };
  struct Notifications {
    std::uint32_t servers = 0;  ///< that notified it since its last attempt
    Duration first{};
  };
  struct Round {
    Duration began{};
    std::uint32_t extended = 0;
  };
  /// What a server has of the lock; nothing at a replica, whose data is its master's.
  struct Standing {
    bool there = false;
    std::string value;
    std::optional<Milliseconds> expires;
    bool recorded = false;                     ///< there is an owner record
    std::map<std::string, double> shares;      ///< live ones, by lease, with their first ends
    std::map<std::string, std::string> slots;  ///< of live shares, with the lease in each
  };

  static std::uint32_t bit_of(const Server& server) { return std::uint32_t{1} << server.vote(); }
  [[nodiscard]] Standing standing_at(Server& server) const;
  [[nodiscard]] static bool has(const Standing& standing, const std::string& token,
                                const Facts& facts);
  void check_script(const Run& run, const Standing& before, const Standing& after,
                    const Reply& reply);
  /// Whether an extension brought the lease's end nearer than anybody requested (PROTOCOL R4).
  [[nodiscard]] static bool is_too_short(const Run& run, const Facts& facts, Milliseconds end);
  void check_shares(const Run& run, const Facts& facts, const Standing& before,
                    const Standing& after);
  void check_slots(const Run& run, const Facts& facts, const Standing& before,
                   const Standing& after, const Reply& reply);
  void check_node(const Run& run);
  void check_expiries(const Run& run, const Standing& after);
  void check_counter(const Run& run);
  void check_requeued(const Run& run);
  void note_superseder(const Run& run, const Reply& reply);
  void note_dismissal(const Run& run);
  void note_undo_elsewhere(const Run& run);
  void note_late_entry(const Run& run);
  /// The superseders that are newer than every waiter of this process.
  [[nodiscard]] std::vector<const Superseder*> newer_than(const Process& process) const;
  void check_healed(const Run& run, const Facts& facts);
  void check_tombstone(const Run& run, const Facts& facts);
  /// Reads the ends again: since a clock was set back, the lease ends later there than noted.
  void read_ends(const std::string& token, Facts& facts) const;
  void note_end(const Run& run, Facts& facts, const Standing& after);
  [[nodiscard]] Duration kept_until(const Facts& facts) const;
  [[nodiscard]] static Duration end_of(const Server& server, const Facts& facts,
                                       const Standing& standing);
  [[nodiscard]] bool may_be_taken(const std::string& token, const Facts& facts) const;
  /// Whether it was valid from then on, and no client can have taken it meanwhile.
  [[nodiscard]] bool is_held_since(const std::string& token, const Facts& facts,
                                   Duration began) const;
  [[nodiscard]] bool is_abandoned(const std::string& token, const Facts& facts) const;
  void check_support(const std::string& token, const Facts& facts);
  void check_overlap(const std::string& token, const Facts& facts);
  void check_fence(const std::string& token, const Facts& facts);
  /// The facts of a user have the token of the lease, followed by its name.
  [[nodiscard]] static std::string key_of(const Process& user, const Token& token);
  [[nodiscard]] static std::string_view token_in(std::string_view key) {
    return key.substr(0, Token::digits);
  }
  void finish_users(const std::string& token);
  [[nodiscard]] static bool may_be_together(const Facts& one, const Facts& other);
  [[nodiscard]] static Votes votes_of(const Facts& facts);
  void finish(Facts& facts) const;
  void note_removals(const Run& run, const Standing& before, const Standing& after);
  [[nodiscard]] bool is_valid(const Facts& facts) const {
    return facts.granted && !facts.over && timeline_.now() < facts.until;
  }
  [[nodiscard]] bool is_given_up(const Facts& facts, const Server& server) const;
  /// It would have ended at that server by now if the clock there had not been set back, so it is
  /// no longer undone.
  [[nodiscard]] bool has_outlived(const Facts& facts, const Server& server) const {
    return facts.ends[server.vote()] < timeline_.now();
  }
  [[nodiscard]] bool is_quorum(std::uint32_t servers) const;
  [[nodiscard]] std::string name_of(const std::string& token) const;

  std::vector<Server*> servers_;
  Timeline& timeline_;
  History& history_;
  std::string_view judged_;
  Resource resource_;
  std::string owner_;
  std::string readers_;
  std::string slots_;
  std::string queue_;
  std::string waiting_;
  std::string counter_;
  std::string tombstones_;
  std::size_t quorum_;
  Standing before_;
  std::map<std::string, Facts, std::less<>>
      facts_;  ///< by token, including those of foreign clients
  std::size_t grants_ = 0;
  std::map<const Process*, Attempts> attempts_;
  std::map<const Process*, Notifications> notifications_;
  std::map<std::string, Superseder> superseders_;  ///< by waiter id
  std::vector<Dismissal> dismissals_;
  std::map<const Process*, Ticket> tickets_;
  std::size_t hasty_attempts_ = 0;
  /// Their ids in the queue, and the nodes that queued them.
  std::map<const Process*, std::map<std::string, std::set<const Server*>>> waiters_;
  std::map<std::pair<const Process*, std::string>, Round> rounds_;
  std::set<std::pair<const Process*, const Server*>> broken_links_;
  std::set<std::pair<const Process*, const Server*>> unread_ends_;  ///< the rest was dropped
  std::set<const Process*> finished_;
  std::map<const Process*, const Process*> heirs_;
  std::size_t scripts_ = 0;
  bool data_lost_ = false;
  bool addresses_lost_ = false;
  std::map<const Server*, const Server*> stand_ins_;  ///< where the addresses of these lead now
  std::map<std::pair<std::string, std::size_t>, Duration>
      left_at_;  ///< when a waiter last left a server's queue
  /// Waiters that were queued again after their `leave`, by a script that no `leave` could follow.
  std::set<std::pair<std::string, const Server*>> late_entries_;
  std::uint32_t rights_lost_ = 0;
  std::uint32_t scripts_lost_ = 0;
  Duration orphaned_until_{};  ///< by then all that killed processes have at servers has ended
  std::optional<Violation> violation_;
};

}  // namespace redlock::sim
