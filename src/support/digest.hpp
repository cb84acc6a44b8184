#pragma once

#include <string>
#include <string_view>

namespace redlock {

/// Digests (libmd) as lower-case hexadecimal digits.
std::string sha1_hex(std::string_view bytes);
std::string sha256_hex(std::string_view bytes);

}  // namespace redlock
