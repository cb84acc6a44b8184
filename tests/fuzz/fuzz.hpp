#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace redlock::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// What must be true of every input; libFuzzer keeps the input for which it is not.
inline void check(bool truth) {
  if (!truth) std::abort();
}

/// No control characters (C0, DEL, C1) and valid UTF-8, told by other means than those under test.
/// Source: RFC 3629, section 4.
inline bool is_printable_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto is_tail = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    if (lead >= 0x20 && lead < 0x7f) {
      i += 1;
    } else if (lead == 0xc2 && is_tail(i + 1, 0xa0)) {  // below lies C1
      i += 2;
    } else if (lead >= 0xc3 && lead <= 0xdf && is_tail(i + 1)) {
      i += 2;
    } else if (lead >= 0xe0 && lead <= 0xef &&
               is_tail(i + 1, lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf) &&
               is_tail(i + 2)) {
      i += 3;
    } else if (lead >= 0xf0 && lead <= 0xf4 &&
               is_tail(i + 1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf) &&
               is_tail(i + 2) && is_tail(i + 3)) {
      i += 4;
    } else {
      return false;
    }
  }
  return true;
}

/// Whether this is one JSON text, and nothing else. For targets that link fuzz-json.
bool is_json(std::string_view text);

}  // namespace redlock::fuzz
