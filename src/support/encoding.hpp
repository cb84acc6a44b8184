#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace redlock {

/// RFC 4648 §5 without padding: safe in a shell word, an environment variable and a file.
std::string encode_base64url(std::string_view bytes);

/// The inverse of encode_base64url(); nullopt for any text that it does not produce (padding, other
/// alphabets, stray bits).
std::optional<std::string> decode_base64url(std::string_view text);

inline constexpr std::string_view hex_digits = "0123456789abcdef";

/// Appends the `digits` lowest hexadecimal digits of the number, in lower case.
void append_hex(std::string& out, std::uint64_t number, unsigned digits);

/// Two lower-case digits for each byte.
std::string hex(std::span<const std::byte> bytes);

}  // namespace redlock
