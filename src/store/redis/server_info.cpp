#include "store/redis/server_info.hpp"

#include <algorithm>
#include <charconv>

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
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (text->empty() || error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

}  // namespace redlock::redis
