#include "core/helper_keys.hpp"

#include <array>

namespace redlock {
namespace {

constexpr std::uint16_t slots = 16384;
constexpr std::uint16_t xmodem_polynomial = 0x1021;

using CrcTable = std::array<std::uint16_t, 256>;

constexpr CrcTable make_crc_table() {
  CrcTable table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte) {
    unsigned crc = static_cast<unsigned>(byte) << 8;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc << 1) ^ ((crc & 0x8000U) != 0 ? xmodem_polynomial : 0U);
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}

constexpr CrcTable crc_table = make_crc_table();

constexpr std::uint16_t crc_add(std::uint16_t crc, char byte) {
  const unsigned index = (crc >> 8) ^ static_cast<unsigned char>(byte);
  return static_cast<std::uint16_t>((crc << 8) ^ crc_table[index]);
}

constexpr std::uint16_t crc_of(std::string_view text) {
  std::uint16_t crc = 0;
  for (const char byte : text) crc = crc_add(crc, byte);
  return crc;
}

/// The key's own hash tag: the part between its first `{` and the first `}` after it; empty when
/// there is none.
std::string_view own_tag(std::string_view key) {
  const auto open = key.find('{');
  if (open == std::string_view::npos) return {};
  const auto close = key.find('}', open);
  if (close == std::string_view::npos) return {};
  return key.substr(open + 1, close - open - 1);
}

/// The smallest decimal number in a slot. Ten numbers share all digits but the last, so most of
/// each CRC is computed once for the ten.
std::string min_number_in(std::uint16_t slot) {
  std::string prefix;
  for (unsigned tens = 0;; prefix = std::to_string(++tens)) {
    const std::uint16_t crc = crc_of(prefix);
    for (char digit = '0'; digit <= '9'; ++digit) {
      if (crc_add(crc, digit) % slots == slot) return prefix + digit;
    }
  }
}

/// A tag without `}` that puts any key into the slot of `key`.
std::string tag_for(std::string_view key) {
  const std::string_view own = own_tag(key);
  return own.empty() ? min_number_in(hash_slot(key)) : std::string(own);
}

/// A glob pattern that matches this text only.
std::string escape_glob(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// The part of a helper key before its tail; `name` may be a pattern.
std::string before_tail(std::string_view name) {
  return std::string(Resource::reserved_prefix).append(name).append(":");
}

/// Matches both forms: the key in the braces, or after a tag in braces.
std::string pattern_of(std::string_view name, std::string_view prefix) {
  std::string pattern = before_tail(name).append("{*");
  return prefix.empty() ? pattern : pattern.append(escape_glob(prefix)).append("*");
}

std::string braced(std::string_view text) {
  return std::string("{").append(text).append("}");
}

}  // namespace

std::uint16_t hash_slot(std::string_view key) {
  const std::string_view tag = own_tag(key);
  return crc_of(tag.empty() ? key : tag) % slots;
}

HelperKeys::HelperKeys(const Resource& resource) {
  const std::string& key = resource.key();
  // A `}` in the key would end the tag early. The helper key would be in another slot, and `foo`
  // and `foo}…` would share it.
  const bool fits_in_braces = key.find('}') == std::string::npos;
  tail_ = fits_in_braces ? braced(key) : braced(tag_for(key)) + key;
}

std::string HelperKeys::owners_like(std::string_view prefix) {
  return pattern_of(protocol::key::names[protocol::key::owner], prefix);
}

std::string HelperKeys::helpers_like(std::string_view prefix) {
  return pattern_of("*", prefix);
}

bool HelperKeys::is_fence(std::string_view helper_key) {
  return helper_key.starts_with(before_tail(protocol::key::names[protocol::key::fence]));
}

std::optional<Resource> HelperKeys::resource_of_owner(std::string_view owner_key) {
  return resource_of(protocol::key::owner, owner_key);
}

std::optional<Resource> HelperKeys::resource_of_last(std::string_view last_key) {
  return resource_of(protocol::key::last, last_key);
}

std::optional<Resource> HelperKeys::resource_of(std::size_t key, std::string_view helper_key) {
  const std::string beginning = before_tail(protocol::key::names[key]).append("{");
  if (!helper_key.starts_with(beginning)) return std::nullopt;
  const std::string_view tail = helper_key.substr(beginning.size());
  const auto close = tail.find('}');
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view after = tail.substr(close + 1);
  const auto resource = Resource::from(after.empty() ? tail.substr(0, close) : after);
  // Other clients may write keys that look like ours; accept only what we would write ourselves.
  if (!resource || HelperKeys(*resource).named(key) != helper_key) return std::nullopt;
  return *resource;
}

std::vector<std::string> HelperKeys::all() const {
  std::vector<std::string> keys;
  keys.reserve(protocol::key::count - 1);
  for (std::size_t key = protocol::key::lock + 1; key < protocol::key::count; ++key)
    keys.push_back(named(key));
  return keys;
}

std::string HelperKeys::named(std::size_t key) const {
  return before_tail(protocol::key::names[key]).append(tail_);
}

}  // namespace redlock
