#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace redlock {

inline constexpr std::string_view hex_digits = "0123456789abcdef";

/// Appends the last `digits` hexadecimal digits of the number, in lower case.
void append_hex(std::string& out, std::uint64_t number, unsigned digits);

/// Two lower-case digits for each byte.
std::string hex(std::span<const std::byte> bytes);

}  // namespace redlock
