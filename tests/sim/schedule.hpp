#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/protocol.hpp"
#include "profile.hpp"
#include "session.hpp"

namespace redlock::sim {

/// How long those behind somebody who was notified leave it to that one (PROTOCOL Q5).
inline constexpr Milliseconds standby_delay{1300};

struct MachinePlan {
  Duration clock_origin{};
  std::int64_t ppm = 0;
  Milliseconds wall_offset{};
};

/// A vote of several nodes.
struct NodesPlan {
  VoteKind kind = VoteKind::cluster;
  std::vector<std::size_t> nodes;  ///< servers; the first has the number of the vote
  std::vector<std::size_t> sentinels{};
  bool is_old = false;  ///< Redis 6

  [[nodiscard]] std::size_t vote() const { return nodes.front(); }
};

struct PathPlan {
  Duration delay{};
  Duration jitter{};
  unsigned stragglers = 0;
};

/// Something that happens to somebody, from `at` for `span`.
struct Mishap {
  enum class Kind {
    crash,          ///< a server's process ends and is started again with all its data
    wipe,           ///< the same without
    freeze,         ///< a server stands still
    flush_scripts,  ///< SCRIPT FLUSH
    outage,         ///< nothing gets from a host to a server or back
    isolate_host,   ///< nor to any server
    isolate_server,
    cut,               ///< a connection breaks
    pause,             ///< a host stands still
    step_client_wall,  ///< by `step`
    step_server_wall,  ///< by `step`
    break_lock,  ///< somebody on a host takes the lock away by force, or tries with a fence that it
                 ///< has not
    foreign,     ///< a client of another library locks for `span`
    foreign_for_ever,  ///< the same without an expiry, or with a key of another type; goes after
                       ///< `span`
    refuse,            ///< a server refuses what `refusal` says
    power_loss,  ///< all servers lose power, and are back with their data before anybody notices
    cut_subscriptions,  ///< nobody on a host hears any server, until it subscribes again
    lose_marker,    ///< the key of a shared lock goes from every server, and what lies beside it
                    ///< stays
    inspect,        ///< somebody on a host asks who has the lock
    evict,          ///< a server loses the lock's key, and what lies beside it stays
    move_address,   ///< a server's address leads to `other` for a while
    spoil_counter,  ///< a server's fence counter is no number that it may be, for a while
    spoil_key,      ///< another program writes what makes no sense into a helper key of a server
    newer_waiter,   ///< a waiter of a newer version stands in every queue for `span`, first of all
    move_slot,      ///< of a server's cluster, within about `span`
    fail_over,      ///< a replica takes the master's place
  };
  Kind kind = Kind::crash;
  Duration at{};
  Duration span{};
  std::size_t host = 0;
  std::size_t server = 0;
  std::size_t other = 0;     ///< move_address: another server
  std::size_t spoiling = 0;  ///< spoil_key: which of `spoilings`
  Milliseconds step{};
  Refusal refusal = Refusal::none;
  bool flag = false;  ///< cut: what is under way arrives; break_lock: only with a certain fence;
                      ///< foreign: dies without releasing; foreign_for_ever: a hash; fail_over:
                      ///< the master crashes
};

/// What another program writes into a helper key: a command, without the name of the key. In a word
/// LEASE stands for the id of the exclusive lease that there is, READER for that of a share, and
/// WAITER for that of the first waiter. None of it opens the lock: where readers or slots are of
/// another type, servers grant nothing by them.
struct Spoiling {
  std::size_t key;  ///< one of protocol::key
  std::string_view command;
  std::vector<std::string> words;
  bool replaces = true;  ///< what was there goes first
};

inline const Spoiling spoilings[] = {
    {protocol::key::fence, "SET", {"many"}},
    {protocol::key::fence, "SET", {"-1"}},
    {protocol::key::fence, "SET", {"1.5"}},
    {protocol::key::fence, "HSET", {"a", "b"}},
    {protocol::key::owner, "SET", {"somebody"}},
    {protocol::key::owner, "HSET", {"lease", "LEASE"}},
    {protocol::key::owner, "HSET", {"lease", "shared"}},
    {protocol::key::owner, "HSET", {"lease", "another"}, false},
    {protocol::key::owner, "HSET", {"lease", "shared"}, false},
    {protocol::key::owner, "HDEL", {"record"}, false},
    {protocol::key::owner, "HSET", {"record", "two\nlines"}, false},
    {protocol::key::released, "SET", {"everything"}},
    {protocol::key::released, "ZADD", {"9000000000000", "broken:LEASE"}, false},
    {protocol::key::released, "HSET", {"a", "b"}},
    {protocol::key::readers, "SET", {"everybody"}},
    {protocol::key::readers, "ZADD", {"1700000300000", "another"}, false},
    {protocol::key::shares, "SET", {"all"}},
    {protocol::key::shares, "HSET", {"READER", "not a share"}, false},
    {protocol::key::slots, "SET", {"none"}},
    {protocol::key::queue, "SET", {"long"}},
    {protocol::key::queue, "ZADD", {"1", "gone"}, false},
    {protocol::key::queue, "ZADD", {"9000000000000", "last"}, false},
    {protocol::key::waiters, "SET", {"some"}},
    {protocol::key::waiters, "HSET", {"+", "no waiter"}, false},
    {protocol::key::waiters, "HSET", {"WAITER", "no entry"}, false},
    {protocol::key::last, "SET", {"yesterday"}},
    {protocol::key::last, "SET", {"1000 5 5\nlater"}},
    {protocol::key::last, "HSET", {"a", "b"}},
};

/// Everything that is decided before a schedule begins. What is drawn later, delays and the
/// clients' own randomness, hangs on it.
struct Schedule {
  enum class Shape {
    chaos,
    cron,  ///< some start at the same time, try once, and nothing is wrong: one of them gets the
           ///< lock
    line,  ///< some wait for ever, and all servers are well: they get it in order, one right after
           ///< the other
    duplicate,  ///< one server was given twice: nobody gets it
    nightly,    ///< see nightly.hpp
  };
  Shape shape = Shape::chaos;
  std::size_t servers = 3;              ///< votes, unless some are of several nodes
  std::size_t keys = 1;                 ///< locks that there are
  std::vector<std::size_t> configured;  ///< indices of servers, in the clients' order
  bool identifies_itself = true;        ///< clients may ask INFO
  Duration restart_guard{};
  std::vector<NodesPlan> nodes{};         ///< of the votes that are not one server
  std::vector<MachinePlan> server_plans;  ///< of each vote, then of all other nodes and sentinels
  std::vector<MachinePlan> hosts;
  bool has_host_names = false;          ///< each has its own; else all have the same
  std::vector<std::size_t> mute_hosts;  ///< whose user may not PUBLISH
  std::vector<std::size_t> deaf_hosts;  ///< whose user may not SUBSCRIBE
  std::vector<PathPlan> paths;          ///< host * server plans + server
  std::vector<SessionPlan> sessions;
  std::vector<Mishap> mishaps;
  std::vector<bool> quiet_days{};  ///< of nightly: nothing happens to servers or hosts
  /// Null when that vote is one server.
  [[nodiscard]] const NodesPlan* nodes_of(std::size_t vote) const;
  /// What all sessions need for themselves.
  [[nodiscard]] Duration work() const;

  Duration calm{};  ///< from then on nothing goes wrong any more
  Duration progress_from{};
  Duration bound{};  ///< from progress_from on: how long a free lock may go without a holder while
                     ///< somebody waits
};

Schedule draw(const Profile& profile, std::uint64_t seed);

/// One line that says what kind of schedule it is.
std::string describe(const Schedule& schedule);

/// For the history.
std::string describe(const Mishap& mishap);
std::string describe(const NodesPlan& plan);

}  // namespace redlock::sim
