#include "support/hex.hpp"

namespace redlock {

void append_hex(std::string& out, std::uint64_t number, unsigned digits) {
  for (unsigned left = digits; left > 0; --left) {
    out += hex_digits[(number >> (4 * (left - 1))) & 0xfU];
  }
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) append_hex(text, std::to_integer<std::uint64_t>(byte), 2);
  return text;
}

}  // namespace redlock
