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
#include "virtual/server.hpp"

namespace redlock::sim {

struct Violation {
  std::string rule;  ///< one word: exclusion, fence, resurrection, …
  std::string text;
};

/// Sees everything: what the scripts do to each server and what each holder believes. Knows what
/// must never be, and nothing of how the product goes about it.
///
///   exclusion     two leases valid at once that must not be, each by its holder's own clock: one
///                 alone and any other, or two in one slot; a foreign holder's counts as one alone.
///                 One that is kept behind its end (--min-hold) counts for so long, and one of
///                 which copies were removed by force, or whose holder was killed and of which
///                 some were released by hand, as long as the others keep a quorum from anybody
///                 else
///   grant         a lease that is over already, or that no server knows of
///   quorum        a lease without the votes of so many different servers
///   fence         fences do not rise in the order in which quorums were complete, whenever each
///                 holder learns of its grant: one alone is above all before it, a shared one above
///                 those alone before it, one in a slot above those before it in the slot. It is
///                 granted though no quorum knows of its fence, or with one below those of a quorum
///                 of its votes; or a server gets the lease back without its fence
///   resurrection  a lease comes back that was over: its key is made anew where it was gone, it is
///                 extended after it was taken away, or it is given back to a server before a
///                 quorum extended it in the same round
///   theft         a script changes what is another's
///   shortening    an extension brings an end nearer
///   expiry        a key of ours without an end, or a marker that ends before a share
///   ghost         a server keeps what was taken back or released, though it read everything,
///                 unless it read several attempts after their ttl, or its clock was set back since
///                 then; or a grant that the process knew of, when it and those that went on behind
///                 it have ended
///   tombstone     the keeper of a lease that was released by hand is told something else; or a
///                 server that knows of the release gets the lease back
///   deadline      a holder, or a run nested in it, relies on its lease for longer than a quorum of
///                 servers, by their clocks, would keep it
///   line          a waiter draws a ticket that is not behind those of whom a quorum of servers
///                 told it; is not put back into its place with what it takes back, or stays in the
///                 queue after two attempts in a row without a quorum of answers; or a server keeps
///                 it in the queue though it is gone and read everything
///   trouble       a round of extending fails though every server answered
///   slot          an extension counts for a slot that the lease has not at that server; or a
///                 server keeps another slot for it than the one that counts, though the holder
///                 knew when it had the lock
///   superseded    a waiter gives up for a newer one that no server knew of, or although a quorum
///                 told it of none; or it is granted the lock, asked for after a quorum of servers
///                 knew of a newer one, or waits on
///   node          a script runs at a node of a vote for a key that another node of it has
///   inspect       a lease that lasted all the while is shown as free, or as another's
///
/// The world adds what only it can see: progress, order, and delay: a waiter that could enter is
/// let in by a timer.
class Referee final : public Watcher {
 public:
  /// `judged`: the only rule that matters; empty: all.
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

  /// Each server, before anything happens.
  void add(Server& server) { servers_.push_back(&server); }

  // What the servers do: referee_scripts.cpp.
  void before(const Run& run) override;
  void after(const Run& run, const Reply& reply) override;
  void saw_end(Server& server, Process& process, bool read_all) override;
  void broke(Server& server, Process& process) override {
    broken_links_.insert({&process, &server});
  }
  void redirected(Server& server, Process& process, const Reply& error) override;
  void moved(Server& from, Server& to) override;
  /// It goes on undoing what the other one could not.
  void inherits(const Process& heir, const Process& process) { heirs_[&heir] = &process; }
  /// The key of a shared lock goes, as evicted.
  void lose_marker(Server& server);
  /// What a round that began then shows of the lock.
  void inspected(const Inspection& inspection, Duration began);
  /// A server forgot everything: it cannot know of tombstones either.
  void lost_data() { data_lost_ = true; }

  // What a process asks its servers, and hears from them: referee_processes.cpp.
  /// `ticket`: if it waits in the queue.
  void attempts(const Process& process, const Token& token, std::optional<Ticket> ticket);
  void hears_answer(const Process& process, const Token& token, const QueueStatus& line);
  void hears_grant(const Process& process, const Token& token, std::size_t server,
                   std::optional<std::size_t> slot);
  /// It has the lock of its last attempt, and asks for another one now.
  void goes_on(const Process& process) { attempts_[&process].decided = true; }
  /// It releases what it acquired, although no session may ever have had it.
  void gives_back(const Token& token) { facts_[token.secret()].given_back = true; }
  void hears_call(const Process& process, std::size_t server, Notification call);
  void leaves(const std::string& waiter, std::size_t server) {
    left_at_[{waiter, server}] = timeline_.now();
  }
  /// When the round began, which is its name.
  Duration begins_to_extend(const Process& process, const Token& token);
  void hears_extended(const Process& process, const Token& token, Duration began,
                      std::size_t server);
  void heals(const Process& process, const Token& token);

  // What the holders say.
  void granted(Process& process, const Lease& lease);
  /// `asked`: when the round began, in true time.
  void extended(Process& process, const Token& token, Instant deadline, Duration asked);
  void in_trouble(Process& process, const LeaseInTrouble& trouble);
  void ended(Process& process, const Token& token, const LeaseEnded& end);
  /// The holder does nothing under the lease any more, and calls release now. `expire_in`: nobody
  /// else may have the lock for so long all the same.
  void stopped(const Process& process, const Token& token, Duration expire_in = Duration::zero());
  /// SIGKILL: what servers have of it stays until it expires.
  void killed(const Process& process);
  /// Another process extends it as well. Its round may straddle the holder's release, and heal a
  /// server behind it.
  void shared(const Token& token) { facts_[token.secret()].shared = true; }
  /// Another process runs under the lease until then.
  void relied_on(const Process& process, const Token& token, Instant deadline);
  /// It is gone, and so is the process that went on undoing for it: all that it knew of is undone.
  void left_nothing(const Process& process);
  /// It does not understand the next `leave`.
  void lose_scripts(const Server& server) { scripts_lost_ |= std::uint32_t{1} << server.vote(); }
  /// It denies its clients what they may do elsewhere: an undo is not asked for again there.
  void lose_rights(const Server& server) { rights_lost_ |= std::uint32_t{1} << server.vote(); }
  /// The address of `server` leads to `to` from now on; what is to be undone at `server` cannot be
  /// found meanwhile.
  void move_address(const Server& server, const Server& to);
  void released(const Token& token, const ReleaseResult& result);
  /// All that the process will ever ask is sent, but for ends of connections.
  void finished(Process& process) { finished_.insert(&process); }

  /// Something of nobody's keeps others out until then.
  void keeps_out_until(Duration when) { orphaned_until_ = std::max(orphaned_until_, when); }

  /// It gave up for a newer waiter.
  void gave_way(const Process& process);
  /// Since when a quorum of servers knows of a newer waiter that supersedes it.
  [[nodiscard]] std::optional<Duration> superseded_since(const Process& process) const;

  // A client of another library.
  void foreign_granted(const std::string& value, Duration until);
  void foreign_ended(const std::string& value);

  void violate(std::string rule, std::string text);
  [[nodiscard]] const std::optional<Violation>& violation() const noexcept { return violation_; }

  /// When the last lease so far was or will be over, and what killed processes left. What a process
  /// has of several locks before it has them all counts, too, but not for itself.
  [[nodiscard]] Duration busy_until(const Process& but) const;
  /// The last instant so far at which the leases of others kept out a waiter that wants that.
  [[nodiscard]] Duration kept_out_until(const Mode& mode, const Process& process) const;
  /// Somebody could release it by hand at some server although it is supervised.
  [[nodiscard]] bool may_seem_unsupervised(const Token& token) const {
    const auto found = facts_.find(token.secret());
    return found != facts_.end() &&
           (found->second.released_alone || found->second.released_unrecorded);
  }
  /// Something was taken away by force that it was about to get.
  [[nodiscard]] bool was_robbed(const Process& process) const;
  [[nodiscard]] std::size_t grants() const noexcept { return grants_; }
  [[nodiscard]] std::size_t scripts() const noexcept { return scripts_; }
  /// How often a waiter asked all servers right behind the call of a few.
  [[nodiscard]] std::size_t hasty_attempts() const noexcept { return hasty_attempts_; }

 private:
  /// As many servers as a schedule may have, and one given twice.
  static constexpr std::size_t max_servers = 8;

  struct Votes {
    std::uint32_t servers = 0;  ///< that granted it, a bit each
    std::size_t quorum_at = 0;  ///< the script that made them a quorum, by number; 0: none yet
  };

  struct Facts {
    const Process* process = nullptr;  ///< whose attempt it was
    std::string id;                    ///< as servers name it
    bool supervised = false;
    bool granted = false;
    bool over = false;  ///< the holder stopped, or a quorum is free of it by somebody's hand
    bool left_to_expire = false;  ///< the holder stopped, and released it for later
    bool orphaned = false;        ///< the holder was killed
    Duration granted_at{};
    bool shared = false;           ///< another process extends it, too
    bool gone_everywhere = false;  ///< every server confirmed its release
    Hold hold;
    Fence fence;
    Duration until{};  ///< by the holder's clock, as true time; or when it was over
    std::map<std::int64_t, Votes> votes{};  ///< by slot; -1: none
    std::uint32_t broken = 0;               ///< servers where it was taken away by force
    std::optional<Duration> broken_since;   ///< by a quorum of them
    std::uint32_t released_by_hand = 0;
    bool released_alone = false;       ///< somewhere by hand: there it has no tombstone
    bool sought_alone = false;         ///< and not found somewhere, whatever tombstone is there
    std::uint32_t extended_alone = 0;  ///< servers where its owner record may have ended since
    bool released_unrecorded = false;  ///< by hand, where that record had ended
    std::array<std::optional<Fence>, max_servers> granted_fences{};  ///< by server
    std::array<Fence, max_servers>
        known_fences{};  ///< to which it brought the server's counter at least
    std::array<Duration, max_servers>
        ends{};  ///< true time until which the server would have kept it
    std::array<std::optional<std::size_t>, max_servers>
        heard_slots{};                     ///< by server, as the process was told
    std::set<const Server*> brought_to{};  ///< nodes that got it from the process and kept it
    Duration asked_at{};
    Duration ttl{};
    std::uint32_t notified = 0;  ///< servers whose grant reached the process
    bool given_back = false;
    std::uint32_t undone_elsewhere = 0;  ///< servers whose undos another one may have answered
    std::uint32_t strays = 0;  ///< servers of which it notified that it has another slot there
  };
  /// A waiter that supersedes older ones.
  struct Superseder {
    const Process* process = nullptr;
    Ticket ticket = 0;
    std::uint32_t servers = 0;        ///< that knew of it as the newest
    std::optional<Duration> since{};  ///< a quorum of them did
  };
  struct Attempts {
    std::string token;
    std::vector<Ticket>
        last_tickets;  ///< of each answer, the largest in that server's line; 0: nobody was there
    std::size_t outages = 0;        ///< in a row, before this one
    bool queued = false;            ///< it has been, at least
    std::size_t without_newer = 0;  ///< answers that told of no newer waiter
    bool decided = false;           ///< granted, and what else it has is undone
  };
  struct Calls {
    std::uint32_t servers = 0;  ///< that notified it since it last asked
    Duration first{};
  };
  struct Round {
    Duration began{};
    std::uint32_t extended = 0;
  };
  /// What a server has under the lock; of a replica nothing, since that is its master's.
  struct Standing {
    bool there = false;
    std::string value;
    std::optional<Milliseconds> expires;
    bool recorded = false;                     ///< there is an owner record
    std::map<std::string, double> shares;      ///< those that live, with their ends
    std::map<std::string, std::string> slots;  ///< who is in it, of those that live
  };

  static std::uint32_t bit_of(const Server& server) { return std::uint32_t{1} << server.vote(); }
  [[nodiscard]] Standing look(Server& server) const;
  [[nodiscard]] static bool has(const Standing& standing, const std::string& token,
                                const Facts& facts);
  void check_script(const Run& run, const Standing& before, const Standing& after,
                    const Reply& reply);
  void check_shares(const Run& run, const Facts& facts, const Standing& before,
                    const Standing& after, const std::string& what);
  void check_slots(const Run& run, const Facts& facts, const Standing& before,
                   const Standing& after, const Reply& reply, const std::string& what);
  void check_node(const Run& run);
  void check_expiries(const Run& run, const Standing& after);
  void check_counter(const Run& run, const std::string& what);
  void check_place(const Run& run);
  void note_superseder(const Run& run);
  void note_undo_elsewhere(const Run& run);
  void note_late_place(const Run& run);
  /// Those that are newer than any waiter of this process.
  [[nodiscard]] std::vector<const Superseder*> newer_than(const Process& process) const;
  void check_healed(const Run& run, const Facts& facts);
  void check_tombstone(const Run& run, const Facts& facts);
  /// A clock that was set back since lets it end later than noted.
  void read_ends(const std::string& token, Facts& facts) const;
  void note_end(const Run& run, Facts& facts, const Standing& after);
  [[nodiscard]] Duration kept_until(const Facts& facts) const;
  [[nodiscard]] static Duration end_of(const Server& server, const Facts& facts,
                                       const Standing& standing);
  [[nodiscard]] bool may_be_taken(const std::string& token, const Facts& facts) const;
  [[nodiscard]] bool is_abandoned(const std::string& token, const Facts& facts) const;
  void check_support(const std::string& token, const Facts& facts);
  void check_overlap(const std::string& token, const Facts& facts);
  void check_fence(const std::string& token, const Facts& facts);
  [[nodiscard]] static bool may_be_together(const Facts& one, const Facts& other);
  [[nodiscard]] static Votes votes_of(const Facts& facts);
  void finish(Facts& facts) const;
  void note_removals(const Run& run, const Standing& before, const Standing& after);
  [[nodiscard]] bool is_valid(const Facts& facts) const {
    return facts.granted && !facts.over && timeline_.now() < facts.until;
  }
  [[nodiscard]] bool is_given_up(const Facts& facts, const Server& server) const;
  /// It would have ended at that server by now, had the clock there not been set back: what
  /// undoes it does so no longer.
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
  std::map<std::string, Facts> facts_;  ///< by token; a foreign client's, too
  std::size_t grants_ = 0;
  std::map<const Process*, Attempts> attempts_;
  std::map<const Process*, Calls> calls_;
  std::map<std::string, Superseder> superseders_;  ///< by waiter id
  std::size_t hasty_attempts_ = 0;
  /// Their ids in the queue, and the nodes that put them there.
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
  std::set<std::pair<std::string, const Server*>>
      late_places_;  ///< waiters that were put back behind that, by what could not be followed
  std::uint32_t rights_lost_ = 0;
  std::uint32_t scripts_lost_ = 0;
  Duration orphaned_until_{};  ///< what killed processes have at servers is over by then
  std::optional<Violation> violation_;
};

}  // namespace redlock::sim
