#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/vote.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// What a server that is examined tells. Empty: it did not, or we may not ask.
struct ServerReport {
  std::optional<Duration> latency;       ///< of a question and its answer
  std::optional<Duration> clock_offset;  ///< its wall clock less ours; not surer than half the latency
  std::string software;                  ///< redis, valkey
  std::string version;
  std::string role;            ///< master, slave
  std::string master;          ///< host:port, of a replica
  std::string replication_id;  ///< the same for a master and its replicas
  ServerFacts facts;
  std::optional<bool> append_only;
  std::string append_fsync;         ///< always, everysec, no
  std::optional<std::string> save;  ///< when it saves everything, as it is configured; an empty text: never
  std::optional<bool> saves_well;   ///< false: the last time failed
  std::string eviction_policy;
  std::optional<std::int64_t> max_memory;  ///< bytes, 0: no limit
  std::optional<std::int64_t> replicas;    ///< that are connected and in step
  std::optional<Fault> refuses_scripts;    ///< it would not run a script that it does not know yet
  bool is_ours = false;                    ///< a store of this program on this host: nobody sets it up, and there is nothing to tell
  bool fails_over = false;                 ///< a replica takes its place when it fails (Sentinel, Cluster)
};

/// How one server fared.
struct Checkup {
  std::optional<Fault> fault;  ///< it could not be asked at all; the rest is empty
  ServerReport report;
  std::string lock_step;                    ///< what was tried last with the probe key, for Checkup::lock_fault
  std::optional<Fault> lock_fault;          ///< nothing: it can be locked, extended, healed and released
  std::vector<std::string> missing_rights;  ///< commands that scripts call and we may not run, in lower case
  bool lock_held = false;                   ///< somebody holds the key that was to be probed with: not tried in full
};

enum class Grade {
  good,
  unknown,  ///< it cannot be told, mostly for want of rights
  warning,  ///< it works, but something may go wrong
  bad,      ///< no vote
};

struct Finding {
  Grade grade;
  std::string check;  ///< a word for programs: reach, software, role, rights, persistence, eviction, replicas, clock, latency, uptime,
                      ///< identity, replication
  std::string text;   ///< one clause for people, escaped for the terminal
};

struct ServerFitness {
  bool votes = false;  ///< now: it can be locked, is nobody's twin or replica, and has been up for long enough
  std::vector<Finding> findings;
};

struct Fitness {
  std::vector<ServerFitness> servers;  ///< in configured order
  std::size_t voting = 0;
  std::size_t needed = 0;     ///< a quorum
  Grade worst = Grade::good;  ///< warning or bad where there is one; the unknown does not count

  [[nodiscard]] bool has_quorum() const noexcept { return voting >= needed; }
};

/// What there is to be checked about a set of servers.
struct FitnessDemands {
  Duration server_timeout{};
  Duration restart_guard{};  ///< zero: none, or too few servers
  unsigned replicas = 0;     ///< how many must confirm a grant
};

/// Whether this set of servers is fit to hold locks. Pure. `names` are the servers', in the order of `checkups`.
Fitness judge(const std::vector<std::string>& names, const std::vector<Checkup>& checkups, const FitnessDemands& demands);

}  // namespace redlock
