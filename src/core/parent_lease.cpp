#include "core/parent_lease.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace redlock {
namespace {

constexpr std::string_view entry_format = "1";
constexpr std::size_t fields_before_handle = 5;

std::string_view next_word(std::string_view& rest, char separator) {
  const auto end = std::min(rest.find(separator), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

template <class Number>
std::optional<Number> read_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

std::optional<ParentLease> read_entry(std::string_view text) {
  std::array<std::string_view, fields_before_handle> fields;
  for (auto& field : fields) field = next_word(text, ':');
  const auto& [format, boot, pid_text, start_text, ttl_text] = fields;
  if (format != entry_format || boot.empty()) return std::nullopt;
  const auto pid = read_number<long>(pid_text);
  const auto start = read_number<unsigned long long>(start_text);
  const auto ttl_ms = read_number<long long>(ttl_text);
  if (!pid || !start || !ttl_ms || *ttl_ms > Ttl::max.count()) return std::nullopt;
  const auto ttl = Ttl::from(Milliseconds(*ttl_ms));
  auto handle = LeaseHandle::from_text(text);
  if (!ttl || !handle) return std::nullopt;
  return ParentLease{{std::string(boot), *pid, *start}, *ttl, std::move(*handle)};
}

}  // namespace

std::string held_text(const std::vector<ParentLease>& leases) {
  std::string text;
  for (const ParentLease& lease : leases) {
    if (!text.empty()) text += ' ';
    text.append(entry_format)
        .append(":")
        .append(lease.guard.boot)
        .append(":")
        .append(std::to_string(lease.guard.pid))
        .append(":");
    text.append(std::to_string(lease.guard.start))
        .append(":")
        .append(std::to_string(lease.ttl.length().count()))
        .append(":");
    text.append(lease.handle.text());
  }
  return text;
}

std::vector<ParentLease> read_held(std::string_view text) {
  std::vector<ParentLease> leases;
  while (!text.empty()) {
    if (auto lease = read_entry(next_word(text, ' '))) leases.push_back(std::move(*lease));
  }
  return leases;
}

}  // namespace redlock
