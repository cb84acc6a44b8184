#include "support/fingerprint.hpp"

#include <cstdint>

#include "support/hex.hpp"

namespace redlock {

std::string fingerprint(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x00000100000001b3;
  std::string digits;
  append_hex(digits, hash, 16);
  return digits;
}

}  // namespace redlock
