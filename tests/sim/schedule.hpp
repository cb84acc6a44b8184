#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/protocol.hpp"
#include "profile.hpp"
#include "session.hpp"

namespace redlock::sim {

/// How long the waiters behind a notified one leave the lock to it (PROTOCOL Q5).
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

/// Something that goes wrong, from `at` for `span`.
struct Mishap {
  enum class Kind {
    crash,          ///< a server's process ends and is started again with all its data
    wipe,           ///< the same without
    freeze,         ///< a server stands still
    flush_scripts,  ///< SCRIPT FLUSH
    outage,         ///< nothing gets from a host to a server or back
    isolate_host,   ///< nothing gets from a host to any server or back
    isolate_server,
    cut,               ///< a connection breaks
    pause,             ///< a host stands still
    step_client_wall,  ///< by `step`
    step_server_wall,  ///< by `step`
    break_lock,  ///< a process on a host breaks the lock by force, or tries to with a fence that
                 ///< the lease does not have
    foreign,     ///< a client of another library locks for `span`
    foreign_for_ever,  ///< the same without an expiry, or with a key of another type; goes after
                       ///< `span`
    refuse,            ///< a server refuses commands according to `refusal`
    power_loss,  ///< all servers lose power, and are back with their data before a client notices
    cut_subscriptions,  ///< the subscriptions of a host break, until it subscribes again
    lose_marker,        ///< every server loses the key of a shared lock, but not its helper keys
    inspect,            ///< a process on a host queries the holder of the lock
    ask,                ///< a process on a host queries the holder, and asks it to stop `span`
                        ///< later, when the lock may have another holder
    dismiss,            ///< a process on a host sends away who waits
    evict,              ///< a server loses the lock's key, but not its helper keys
    move_address,       ///< a server's address leads to `other` for a while
    spoil_counter,      ///< a server's fence counter has an invalid value, for a while
    lose_slots,         ///< a server loses the table of slots
    lose_record,        ///< a server loses the owner record, but not the lease
    deny_command,       ///< a server refuses one command of the scripts, for want of a right
    spoil_key,          ///< another program writes nonsense into a helper key of a server
    newer_waiter,       ///< a waiter of a newer version is first in every queue for `span`
    move_slot,          ///< of a server's cluster, within about `span`
    stall_slot,         ///< the same begins, and is cancelled after `span` before any key has moved
    fail_over,          ///< a replica becomes the master
  };
  Kind kind = Kind::crash;
  Duration at{};
  Duration span{};
  std::size_t host = 0;
  std::size_t server = 0;
  std::size_t other = 0;       ///< move_address: another server
  std::size_t spoiling = 0;    ///< spoil_key: which of `spoilings`
  std::string_view command{};  ///< deny_command: in capitals
  Milliseconds step{};
  Refusal refusal = Refusal::none;
  bool flag = false;  ///< cut: data in flight arrives; break_lock: only with a certain fence;
                      ///< foreign: dies without releasing; foreign_for_ever: a hash; fail_over:
                      ///< the master crashes
};

/// The write of another program to a helper key: a command without the name of the key. In a word,
/// LEASE stands for the id of the current exclusive lease, READER for that of a share, and WAITER
/// for that of the first waiter. None of it opens the lock: where readers or slots have another
/// type, servers grant nothing by them.
struct Spoiling {
  std::size_t key;  ///< one of protocol::key
  std::string_view command;
  std::vector<std::string> words;
  bool replaces = true;  ///< the old value is deleted first
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

/// Everything that is decided before a schedule begins. What is drawn later (delays and the
/// clients' own randomness) depends on it.
struct Schedule {
  enum class Shape {
    chaos,
    cron,   ///< some sessions start at the same time and try once, and nothing goes wrong: one of
            ///< them gets the lock
    queue,  ///< some sessions wait for ever, and all servers are well: the sessions get the lock in
            ///< order, one right after the other
    duplicate,  ///< one server is configured twice: no session gets the lock
    nightly,    ///< see nightly.hpp
  };
  Shape shape = Shape::chaos;
  std::size_t servers = 3;              ///< votes, unless some are of several nodes
  std::size_t keys = 1;                 ///< number of locks
  std::vector<std::size_t> configured;  ///< indices of servers, in the clients' order
  bool identifies_itself = true;        ///< clients may ask INFO
  Duration restart_guard{};
  std::vector<NodesPlan> nodes{};         ///< of the votes that are several nodes
  std::vector<MachinePlan> server_plans;  ///< of each vote, then of all other nodes and sentinels
  std::vector<MachinePlan> hosts;
  bool has_host_names = false;  ///< each host has its own; else all have the same
  std::vector<std::size_t> hosts_without_publish;    ///< whose user may not PUBLISH
  std::vector<std::size_t> hosts_without_subscribe;  ///< whose user may not SUBSCRIBE
  bool monitored = false;       ///< another client subscribes to all channels of each server
  bool keeps_leases = false;    ///< no lease may end before its holder releases it
  std::vector<PathPlan> paths;  ///< host * server plans + server
  std::vector<SessionPlan> sessions;
  std::vector<Mishap> mishaps;
  std::vector<bool> quiet_days{};  ///< of nightly: nothing goes wrong with servers or hosts
  /// Null when that vote is one server.
  [[nodiscard]] const NodesPlan* nodes_of(std::size_t vote) const;
  /// The work of all sessions, plus one ttl for each.
  [[nodiscard]] Duration work() const;

  Duration calm{};  ///< from then on nothing goes wrong
  Duration progress_from{};
  Duration bound{};  ///< from progress_from on: how long a free lock may have no holder while a
                     ///< session waits
};

Schedule draw(const Profile& profile, std::uint64_t seed);

/// A line that describes the kind of schedule.
std::string describe(const Schedule& schedule);

/// For the history.
std::string describe(const Mishap& mishap);
std::string describe(const NodesPlan& plan);

}  // namespace redlock::sim
