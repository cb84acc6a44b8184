#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace redlock {

/// RFC 4648 §5 without padding: safe in a shell word, an environment variable and a file.
std::string encode_base64url(std::string_view bytes);

/// The inverse; nothing for any text that encode_base64url() does not produce (padding, other
/// alphabets, stray bits).
std::optional<std::string> decode_base64url(std::string_view text);

}  // namespace redlock
