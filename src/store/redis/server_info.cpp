#include "store/redis/server_info.hpp"

#include <algorithm>

#include "store/redis/topology.hpp"
#include "support/number.hpp"

namespace redlock::redis {

std::optional<std::string_view> ServerInfo::field(std::string_view name) const {
  std::string_view rest = text_;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
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

std::int64_t ServerInfo::replicas_in_step() const {
  return static_cast<std::int64_t>(replicas().size());
}

ServerFacts facts_from(const Reply& info, Instant told, Instant now) {
  ServerFacts facts;
  if (info.type != Reply::Type::text) return facts;  // no right to ask
  const ServerInfo fields(info.text);
  facts.run_id = fields.field("run_id").value_or("");
  if (const auto up = fields.number("uptime_in_seconds")) {
    facts.up = std::chrono::seconds(std::clamp(*up, -max_uptime, max_uptime)) + (now - told);
  }
  return facts;
}

}  // namespace redlock::redis
