#pragma once

#include <string>
#include <string_view>

namespace redlock {

/// Digests (libmd) as lower-case hexadecimal digits.
std::string sha1_hex(std::string_view bytes);
std::string sha256_hex(std::string_view bytes);

/// 64-bit FNV-1a as 16 hexadecimal digits. It detects accidental differences, but does not resist
/// deliberate collisions. Source: Fowler, Noll, Vo, draft-eastlake-fnv.
std::string fingerprint(std::string_view bytes);

}  // namespace redlock
