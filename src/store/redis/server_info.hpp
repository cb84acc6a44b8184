#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/vote.hpp"
#include "store/redis/endpoint.hpp"
#include "store/script.hpp"
#include "support/boot_clock.hpp"

namespace redlock::redis {

/// The reply to INFO: `field:value` lines. Keeps a view of the text, which must outlive it.
class ServerInfo {
 public:
  explicit ServerInfo(std::string_view text) : text_(text) {}

  /// The value; nullopt if there is no such field.
  [[nodiscard]] std::optional<std::string_view> field(std::string_view name) const;

  /// The value as a whole number; nullopt if it is not one.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const;

  /// The addresses of the replicas that are in sync, as the master sees them.
  [[nodiscard]] std::vector<Address> replicas() const;

 private:
  std::string_view text_;
};

/// The facts as of `now` in a reply to INFO or INFO server that came at `answered_at`. An error
/// reply gives no facts.
ServerFacts facts_from(const Reply& info, Instant answered_at, Instant now);

/// The role in these replies to ROLE and INFO: `master`, or another word; empty if both were
/// refused.
std::string role_from(const Reply& role, const Reply& info);

/// A replica's clock, as it was compared with its master's.
struct ReplicaClock {
  std::string address;
  std::optional<Duration> ahead{};  ///< of the master's clock; negative: behind it
  std::string why_unknown{};        ///< one clause for the user
};

/// A question to which a server gave no answer, or an error.
struct Unanswered {
  std::string question;  ///< such as `INFO memory`
  std::string why;       ///< one clause for the user
  bool refused = false;  ///< the server answered with an error
};

/// What a Redis server reports about itself. A field is empty if the server did not report it, or
/// we lack the right to ask.
struct ServerReport {
  std::optional<Duration> latency;  ///< the time between a question and its answer

  /// Its wall clock minus ours; the error is at most half the latency.
  std::optional<Duration> clock_offset;

  std::string software;  ///< redis, valkey, kvrocks, dragonfly
  std::string version;
  std::string role;            ///< master, slave
  std::string master;          ///< of a replica: host:port
  std::string replication_id;  ///< the same for a master and its replicas
  ServerFacts facts;
  std::optional<bool> append_only;
  std::string append_fsync;  ///< always, everysec, no

  /// The setting `save`; an empty text: it never saves a snapshot.
  std::optional<std::string> save;

  std::optional<bool> saves_well;  ///< false: the last snapshot failed
  std::string eviction_policy;
  std::optional<std::int64_t> max_memory;  ///< bytes, 0: no limit
  std::optional<std::int64_t> replicas;    ///< number of connected replicas that are in sync
  std::vector<ReplicaClock> replica_clocks;
  std::size_t servers_behind = 1;  ///< number of processes that connections to its address reach
  std::optional<Fault> refuses_scripts;  ///< why it refuses to load a script
  std::vector<Unanswered> unanswered;    ///< why fields are empty
  bool fails_over = false;   ///< a replica takes its place when it fails (Sentinel, Cluster)
  bool unprotected = false;  ///< over a network, it serves clients without password or TLS
};

/// The report from the reply to INFO, without the facts, the latency, the clock and the settings
/// that only CONFIG reports.
ServerReport report_from(std::string_view info_text);

/// The reply to TIME, as the time since 1970.
std::optional<Duration> time_from(const Reply& reply);

/// The value in the reply to CONFIG GET; nullopt if there is no such parameter, or no right to ask.
std::optional<std::string> configured(const Reply& reply);

/// Combines the reports of two servers that are one vote: the weaker guarantee of each. One that is
/// not known is weaker than a good one, and not than a bad one.
ServerReport weaker(ServerReport a, const ServerReport& b);

}  // namespace redlock::redis
