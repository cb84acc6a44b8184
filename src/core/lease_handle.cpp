#include "core/lease_handle.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "support/base64url.hpp"

namespace redlock {
namespace {

constexpr std::string_view version = "1";
constexpr std::string_view exclusive = "x";
constexpr std::size_t fingerprint_digits = 16;

/// Stands between identities, so that {"ab", "c"} and {"a", "bc"} differ; no address of a server contains it.
constexpr char separator = '\0';

/// 64-bit FNV-1a.
class Fnv1a {
 public:
  void add(char byte) { hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x00000100000001b3; }
  void add(std::string_view text) {
    for (const char byte : text) add(byte);
  }

  [[nodiscard]] std::string hexadecimal() const {
    std::string digits;
    for (unsigned left = fingerprint_digits; left > 0; --left) digits += "0123456789abcdef"[(hash_ >> (4 * (left - 1))) & 0xfU];
    return digits;
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

bool is_fingerprint(std::string_view text) {
  return text.size() == fingerprint_digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// `text` cut at its dots; nothing unless there are exactly as many fields as asked for.
template <std::size_t count>
std::optional<std::array<std::string_view, count>> split_at_dots(std::string_view text) {
  std::array<std::string_view, count> fields;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const auto dot = text.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    fields[i] = text.substr(0, dot);
    text.remove_prefix(dot + 1);
  }
  fields.back() = text;
  return fields;
}

std::optional<Resource> resource_from(std::string_view encoded) {
  const auto key = decode_base64url(encoded);
  if (!key) return std::nullopt;
  auto resource = Resource::from(*key);
  if (!resource) return std::nullopt;
  return std::move(*resource);
}

}  // namespace

std::string server_set_fingerprint(std::vector<std::string> identities) {
  std::ranges::sort(identities);
  identities.erase(std::unique(identities.begin(), identities.end()), identities.end());
  Fnv1a hash;
  for (std::size_t i = 0; i < identities.size(); ++i) {
    if (i > 0) hash.add(separator);
    hash.add(identities[i]);
  }
  return hash.hexadecimal();
}

std::string LeaseHandle::text() const {
  std::string text;
  for (const std::string_view field : {version, exclusive, std::string_view(servers)}) text.append(field).append(".");
  return text.append(encode_base64url(resource.key())).append(".").append(token.secret()).append(".").append(fence.text());
}

std::optional<LeaseHandle> LeaseHandle::from_text(std::string_view text) {
  const auto fields = split_at_dots<6>(text);
  if (!fields) return std::nullopt;
  const auto& [format, mode, servers, key, secret, number] = *fields;
  if (format != version || mode != exclusive || !is_fingerprint(servers)) return std::nullopt;
  const auto resource = resource_from(key);
  const auto token = Token::from_text(secret);
  const auto fence = Fence::from_text(number);
  if (!resource || !token || !fence) return std::nullopt;
  LeaseHandle handle{*resource, *token, *fence, std::string(servers)};
  // Catches what a part reads but never writes, such as a fence with leading zeros.
  if (handle.text() != text) return std::nullopt;
  return handle;
}

}  // namespace redlock
