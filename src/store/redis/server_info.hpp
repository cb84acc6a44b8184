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

/// The text that INFO answers: `field:value` lines. Holds on to the text, which must outlive it.
class ServerInfo {
 public:
  explicit ServerInfo(std::string_view text) : text_(text) {}

  /// The value; nothing when there is no such field.
  [[nodiscard]] std::optional<std::string_view> field(std::string_view name) const;

  /// The value as a whole number; nothing when it is not one.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const;

  /// The addresses of the replicas in step, as it sees them.
  [[nodiscard]] std::vector<Address> replicas() const;

 private:
  std::string_view text_;
};

/// What a server answered, at `told`, to INFO or INFO server, brought up to date. An error gives no
/// facts.
ServerFacts facts_from(const Reply& info, Instant told, Instant now);

/// A replica's clock, as it was compared with its master's.
struct ReplicaClock {
  std::string address;
  std::optional<Duration> ahead{};  ///< of the master's; less than nothing: behind
  std::string why_unknown{};        ///< one clause for people
};

/// What a Redis server reports of itself. Empty: it did not, or we may not ask.
struct ServerReport {
  std::optional<Duration> latency;  ///< of a question and its answer

  /// Its wall clock minus ours; no more precise than half the latency.
  std::optional<Duration> clock_offset;

  std::string software;  ///< redis, valkey
  std::string version;
  std::string role;            ///< master, slave
  std::string master;          ///< host:port, of a replica
  std::string replication_id;  ///< the same for a master and its replicas
  ServerFacts facts;
  std::optional<bool> append_only;
  std::string append_fsync;  ///< always, everysec, no

  /// When it saves everything, as it is configured; an empty text: never.
  std::optional<std::string> save;

  std::optional<bool> saves_well;  ///< false: the last time failed
  std::string eviction_policy;
  std::optional<std::int64_t> max_memory;  ///< bytes, 0: no limit
  std::optional<std::int64_t> replicas;    ///< that are connected and in step
  std::vector<ReplicaClock> replica_clocks;
  std::size_t servers_behind = 1;  ///< different processes that connections to its address met
  std::optional<Fault> refuses_scripts;  ///< it would not run a script that it does not know yet
  bool fails_over = false;   ///< a replica takes its place when it fails (Sentinel, Cluster)
  bool unprotected = false;  ///< over a network it does for everyone what it does for us
};

/// What INFO reports of it: all but facts, latency, clock and what only CONFIG knows.
ServerReport report_from(std::string_view info_text);

/// The answer to TIME, since 1970.
std::optional<Duration> time_from(const Reply& reply);

/// What CONFIG GET found; nothing when there is no such parameter, or no right to ask.
std::optional<std::string> configured(const Reply& reply);

/// What both guarantee: for servers that are one vote.
ServerReport weaker(ServerReport a, const ServerReport& b);

}  // namespace redlock::redis
