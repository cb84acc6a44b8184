#include "store/redis/server_info.hpp"

#include <algorithm>
#include <chrono>
#include <ratio>

#include "store/redis/topology.hpp"
#include "support/number.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

/// An upper bound for uptimes that servers report, to keep sums of times from overflow.
constexpr std::int64_t max_uptime = std::int64_t{100} * 365 * 24 * 3600;  // seconds

}  // namespace

std::optional<std::string_view> ServerInfo::field(std::string_view name) const {
  std::string_view rest = text_;
  while (!rest.empty()) {
    std::string_view line = next_word(rest, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':'))
      return line.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::optional<std::int64_t> ServerInfo::number(std::string_view name) const {
  const auto text = field(name);
  return text ? whole_number(*text) : std::nullopt;
}

std::vector<Address> ServerInfo::replicas() const {
  std::vector<Address> replicas;
  // slave0:ip=10.0.0.2,port=6379,state=online,offset=…,lag=…
  for (int i = 0;; ++i) {
    const auto replica = field("slave" + std::to_string(i));
    if (!replica) return replicas;
    const auto part = [&](std::string_view name) {
      const std::size_t at = replica->find(name);
      if (at == std::string_view::npos) return std::string_view();
      const std::string_view value = replica->substr(at + name.size());
      return value.substr(0, value.find(','));
    };
    if (part("state=") != "online") continue;
    replicas.push_back(announced(part("ip="), part("port=")).value_or(Address{}));
  }
}

ServerFacts facts_from(const Reply& info, Instant answered_at, Instant now) {
  ServerFacts facts;
  if (info.type != Reply::Type::text) return facts;  // no right to ask
  const ServerInfo fields(info.text);
  facts.run_id = fields.field("run_id").value_or("");
  if (const auto up = fields.number("uptime_in_seconds")) {
    facts.up = std::chrono::seconds(std::clamp(*up, -max_uptime, max_uptime)) + (now - answered_at);
  }
  return facts;
}

std::string role_from(const Reply& role, const Reply& info) {
  if (role.type == Reply::Type::array && !role.elements.empty()) return role.elements[0].text;
  if (info.type != Reply::Type::text) return {};
  return std::string(ServerInfo(info.text).field("role").value_or(""));
}

ServerReport report_from(std::string_view info_text) {
  const ServerInfo info(info_text);
  const auto text = [&info](std::string_view name) {
    return std::string(info.field(name).value_or(""));
  };
  ServerReport report;
  // Others report the version of Redis that they resemble, too.
  report.software = "redis";
  for (const char* other : {"valkey", "kvrocks", "dragonfly"}) {
    if (info.field(std::string(other) + "_version")) report.software = other;
  }
  report.version = text(report.software + "_version");
  report.role = text("role");
  if (const auto host = info.field("master_host"))
    report.master = std::string(*host) + ":" + text("master_port");
  report.replication_id = text("master_replid");
  if (const auto enabled = info.number("aof_enabled")) report.append_only = *enabled != 0;
  const auto saved = info.field("rdb_last_bgsave_status");
  const auto appended = info.field("aof_last_write_status");
  if (saved && appended) report.saves_well = *saved == "ok" && *appended == "ok";
  report.eviction_policy = text("maxmemory_policy");
  report.max_memory = info.number("maxmemory");
  if (info.field("connected_slaves"))
    report.replicas = static_cast<std::int64_t>(info.replicas().size());
  return report;
}

std::optional<Duration> time_from(const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.size() != 2) return std::nullopt;
  const auto seconds = whole_number(reply.elements[0].text);
  const auto microseconds = whole_number(reply.elements[1].text);
  if (!seconds || *seconds < 0 || *seconds > 2 * max_uptime) return std::nullopt;
  if (!microseconds || *microseconds < 0 || *microseconds >= std::micro::den) return std::nullopt;
  return std::chrono::seconds(*seconds) + std::chrono::microseconds(*microseconds);
}

std::optional<std::string> configured(const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.size() != 2) return std::nullopt;
  return reply.elements[1].text;
}

ServerReport weaker(ServerReport a, const ServerReport& b) {
  const auto both = [](std::optional<bool> one, std::optional<bool> other) {
    if (one == false || other == false) return std::optional(false);
    return one && other ? std::optional(true) : std::nullopt;
  };
  const auto is_weaker = [](const std::string& one, const std::string& than, const char* good) {
    const auto weakness = [good](const std::string& text) {
      if (text.empty()) return 1;
      return text == good ? 0 : 2;
    };
    return weakness(one) > weakness(than);
  };
  const auto distance = [](const std::optional<Duration>& offset) {
    return offset ? std::max(*offset, -*offset) : Duration::min();
  };
  if (b.latency) a.latency = std::max(a.latency.value_or(*b.latency), *b.latency);
  if (distance(b.clock_offset) > distance(a.clock_offset)) a.clock_offset = b.clock_offset;
  if (b.version < a.version) {
    a.software = b.software;
    a.version = b.version;
  }
  if (is_weaker(b.role, a.role, "master")) {
    a.role = b.role;
    a.master = b.master;
  }
  if (!a.facts.up || !b.facts.up || *b.facts.up < *a.facts.up)
    a.facts.up = b.facts.up ? b.facts.up : std::nullopt;
  a.append_only = both(a.append_only, b.append_only);
  if (is_weaker(b.append_fsync, a.append_fsync, "always")) a.append_fsync = b.append_fsync;
  if (a.save != "" && (!b.save || b.save->empty())) a.save = b.save;
  a.saves_well = both(a.saves_well, b.saves_well);
  if (is_weaker(b.eviction_policy, a.eviction_policy, "noeviction")) {
    a.eviction_policy = b.eviction_policy;
    a.max_memory = b.max_memory;
  }
  a.replica_clocks.insert(a.replica_clocks.end(), b.replica_clocks.begin(), b.replica_clocks.end());
  a.servers_behind = std::max(a.servers_behind, b.servers_behind);
  if (!b.replicas || (a.replicas && *b.replicas < *a.replicas)) a.replicas = b.replicas;
  a.unanswered.insert(a.unanswered.end(), b.unanswered.begin(), b.unanswered.end());
  return a;
}

}  // namespace redlock::redis
