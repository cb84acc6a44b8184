#include "core/lease_handle.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "support/digest.hpp"
#include "support/encoding.hpp"
#include "support/number.hpp"
#include "support/text.hpp"

namespace redlock {
namespace {

constexpr std::string_view handle_format = "1";
constexpr char exclusive = 'x';
constexpr char shared = 's';
constexpr char slotted = 'n';
constexpr char in_slots = 'm';
constexpr char in_named_slots = 'd';
constexpr char inherited = 'b';
constexpr std::size_t fingerprint_digits = 16;
constexpr std::size_t head_fields = 3;
constexpr std::size_t part_fields = 3;  ///< and the slots

/// Separates identities, so that {"ab", "c"} and {"a", "bc"} differ; no server address contains it.
constexpr char separator = '\0';

bool is_fingerprint(std::string_view text) {
  return text.size() == fingerprint_digits &&
         text.find_first_not_of(hex_digits) == std::string_view::npos;
}

std::vector<std::string_view> split_at_dots(std::string_view text) {
  std::vector<std::string_view> fields;
  for (auto dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.')) {
    fields.push_back(text.substr(0, dot));
    text.remove_prefix(dot + 1);
  }
  fields.push_back(text);
  return fields;
}

std::optional<Resource> resource_from(std::string_view encoded) {
  const auto key = decode_base64url(encoded);
  if (!key) return std::nullopt;
  auto resource = Resource::from(*key);
  if (!resource) return std::nullopt;
  return std::move(*resource);
}

char letter_of(const LeaseHandle::Part& part) {
  if (part.inherited) return inherited;
  if (!part.hold.shared) return exclusive;
  if (!part.hold.slot_names.empty()) return in_named_slots;
  if (part.hold.slots.empty()) return shared;
  return part.hold.slots.size() == 1 ? slotted : in_slots;
}

bool has_slots(char mode) {
  return mode == slotted || mode == in_slots || mode == in_named_slots;
}

std::string slots_text(const Hold& hold) {
  std::string text;
  for (const std::size_t slot : hold.slots)
    text += (text.empty() ? "" : "-") + std::to_string(slot);
  std::string names;
  for (const std::string& name : hold.slot_names) names += (names.empty() ? "" : ",") + name;
  return text + encode_base64url(names);
}

/// nullopt if any of them is not a slot number.
std::optional<Slots> read_slots(std::string_view text) {
  Slots slots;
  while (!text.empty()) {
    const auto slot = whole_number<std::size_t>(next_word(text, '-'));
    if (!slot || *slot >= Mode::max_slots) return std::nullopt;
    slots.push_back(*slot);
  }
  return slots;
}

/// nullopt if any of them is not a slot's name.
std::optional<std::vector<std::string>> read_slot_names(std::string_view encoded) {
  const auto text = decode_base64url(encoded);
  if (!text) return std::nullopt;
  std::vector<std::string> names;
  for (std::string_view rest = *text; !rest.empty();) {
    names.emplace_back(next_word(rest, ','));
    if (!is_slot_name(names.back())) return std::nullopt;
  }
  return names;
}

constexpr std::string_view entry_format = "1";
constexpr std::size_t fields_before_handle = 5;

std::optional<ParentLease> read_entry(std::string_view text) {
  std::array<std::string_view, fields_before_handle> fields;
  for (auto& field : fields) field = next_word(text, ':');
  const auto& [format, boot, pid_text, start_text, ttl_text] = fields;
  if (format != entry_format || boot.empty()) return std::nullopt;
  const auto pid = whole_number<long>(pid_text);
  const auto start = whole_number<unsigned long long>(start_text);
  const auto ttl_ms = whole_number(ttl_text);
  if (!pid || *pid < 1 || !start || *start < 1) return std::nullopt;
  if (!ttl_ms || *ttl_ms > Ttl::max.count()) return std::nullopt;
  const auto ttl = Ttl::from(Milliseconds(*ttl_ms));
  auto handle = LeaseHandle::from_text(text);
  if (!ttl || !handle) return std::nullopt;
  return ParentLease{{std::string(boot), *pid, *start}, *ttl, std::move(*handle)};
}

}  // namespace

std::string server_set_fingerprint(std::vector<std::string> identities) {
  std::ranges::sort(identities);
  identities.erase(std::unique(identities.begin(), identities.end()), identities.end());
  std::string all;
  for (std::size_t i = 0; i < identities.size(); ++i) {
    if (i > 0) all += separator;
    all += identities[i];
  }
  return fingerprint(all);
}

std::string LeaseHandle::text() const {
  std::string text;
  text.append(handle_format).append(".");
  for (const Part& part : parts) text += letter_of(part);
  text.append(".").append(servers);
  for (const Part& part : parts) {
    text.append(".")
        .append(encode_base64url(part.resource.key()))
        .append(".")
        .append(part.token.secret());
    text.append(".").append(part.fence.text());
    if (has_slots(letter_of(part))) text.append(".").append(slots_text(part.hold));
  }
  return text;
}

std::optional<LeaseHandle> LeaseHandle::from_text(std::string_view text) {
  const auto fields = split_at_dots(text);
  if (fields.size() < head_fields + part_fields) return std::nullopt;
  const std::string_view modes = fields[1];
  if (fields[0] != handle_format || modes.empty() || !is_fingerprint(fields[2]))
    return std::nullopt;
  LeaseHandle handle{{}, std::string(fields[2])};
  std::size_t next = head_fields;
  for (const char mode : modes) {
    const std::size_t size = has_slots(mode) ? part_fields + 1 : part_fields;
    if (fields.size() - next < size) return std::nullopt;
    const auto resource = resource_from(fields[next]);
    const auto token = Token::from_text(fields[next + 1]);
    const auto fence = Fence::from_text(fields[next + 2]);
    if (!resource || !token || !fence) return std::nullopt;
    if (!handle.parts.empty() && handle.parts.back().resource >= *resource) return std::nullopt;
    Hold hold{mode == shared || has_slots(mode)};
    if (mode == in_named_slots) {
      auto names = read_slot_names(fields[next + part_fields]);
      if (!names) return std::nullopt;
      hold.slot_names = std::move(*names);
    } else if (has_slots(mode)) {
      auto slots = read_slots(fields[next + part_fields]);
      if (!slots) return std::nullopt;
      hold.slots = std::move(*slots);
    }
    handle.parts.push_back({*resource, *token, *fence, mode == inherited, hold});
    next += size;
  }
  if (next != fields.size()) return std::nullopt;
  // Rejects what from_text() of a part accepts but text() never writes, such as a fence with
  // leading zeros, or an empty list of slots.
  if (handle.text() != text) return std::nullopt;
  return handle;
}

std::string held_text(const std::vector<ParentLease>& leases) {
  std::string text;
  for (const ParentLease& lease : leases) {
    if (!text.empty()) text += ' ';
    text.append(entry_format).append(":").append(lease.guard.boot).append(":");
    text.append(std::to_string(lease.guard.pid)).append(":");
    text.append(std::to_string(lease.guard.start)).append(":");
    text.append(std::to_string(lease.ttl.length().count())).append(":");
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
