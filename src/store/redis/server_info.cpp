#include "store/redis/server_info.hpp"

#include <algorithm>

#include "support/number.hpp"

namespace redlock::redis {

std::optional<std::string_view> ServerInfo::field(std::string_view name) const {
  std::string_view rest = text_;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) return line.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::optional<std::int64_t> ServerInfo::number(std::string_view name) const {
  const auto text = field(name);
  return text ? whole_number(*text) : std::nullopt;
}

std::int64_t ServerInfo::replicas_in_step() const {
  std::int64_t count = 0;
  // slave0:ip=10.0.0.2,port=6379,state=online,offset=…,lag=…
  for (int i = 0;; ++i) {
    const auto replica = field("slave" + std::to_string(i));
    if (!replica) return count;
    if (replica->find("state=online") != std::string_view::npos) ++count;
  }
}

ServerReport report_from(std::string_view info_text) {
  const ServerInfo info(info_text);
  const auto text = [&info](std::string_view name) { return std::string(info.field(name).value_or("")); };
  ServerReport report;
  const bool valkey = info.field("valkey_version").has_value();
  report.software = valkey ? "valkey" : "redis";
  report.version = text(valkey ? "valkey_version" : "redis_version");
  report.role = text("role");
  if (const auto host = info.field("master_host")) report.master = std::string(*host) + ":" + text("master_port");
  report.replication_id = text("master_replid");
  if (const auto enabled = info.number("aof_enabled")) report.append_only = *enabled != 0;
  const auto saved = info.field("rdb_last_bgsave_status");
  const auto appended = info.field("aof_last_write_status");
  if (saved && appended) report.saves_well = *saved == "ok" && *appended == "ok";
  report.eviction_policy = text("maxmemory_policy");
  report.max_memory = info.number("maxmemory");
  if (info.field("connected_slaves")) report.replicas = info.replicas_in_step();
  return report;
}

}  // namespace redlock::redis
