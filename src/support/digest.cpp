#include "support/digest.hpp"

#include <sys/types.h>
// After sys/types.h, which libmd's headers need.
#include <sha1.h>
#include <sha2.h>

#include <array>
#include <cstdint>
#include <span>

#include "support/encoding.hpp"

namespace redlock {
namespace {

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

}  // namespace

std::string sha1_hex(std::string_view bytes) {
  SHA1_CTX context;
  std::array<std::uint8_t, SHA1_DIGEST_LENGTH> digest{};
  ::SHA1Init(&context);
  ::SHA1Update(&context, bytes_of(bytes), bytes.size());
  ::SHA1Final(digest.data(), &context);
  return hex(std::as_bytes(std::span(digest)));
}

std::string sha256_hex(std::string_view bytes) {
  SHA2_CTX context;
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  ::SHA256Init(&context);
  ::SHA256Update(&context, bytes_of(bytes), bytes.size());
  ::SHA256Final(digest.data(), &context);
  return hex(std::as_bytes(std::span(digest)));
}

std::string fingerprint(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x00000100000001b3;
  std::string digits;
  append_hex(digits, hash, 16);
  return digits;
}

}  // namespace redlock
