#include "support/hex.hpp"

namespace redlock {

void append_hex(std::string& out, std::uint64_t number, unsigned digits) {
  for (unsigned left = digits; left > 0; --left) {
    out += hex_digits[(number >> (4 * (left - 1))) & 0xfU];
  }
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text(2 * bytes.size(), '0');
  auto digit = text.begin();
  for (const std::byte byte : bytes) {
    *digit++ = hex_digits[std::to_integer<std::size_t>(byte >> 4)];
    *digit++ = hex_digits[std::to_integer<std::size_t>(byte & std::byte{0xf})];
  }
  return text;
}

}  // namespace redlock
