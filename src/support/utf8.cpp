#include "support/utf8.hpp"

#include <cstddef>

namespace redlock {
namespace {

unsigned byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

/// What a lead byte demands. The range of the second byte excludes overlong forms, surrogates and
/// everything above U+10FFFF. Source: The Unicode Standard, table 3-7.
struct Lead {
  std::size_t length;
  char32_t bits;
  CodePointRange second;
};

constexpr CodePointRange continuation{0x80, 0xbf};

std::optional<Lead> classify(unsigned byte) {
  if (byte < 0x80) return Lead{1, byte, continuation};
  if (byte < 0xc2) return std::nullopt;
  if (byte < 0xe0) return Lead{2, byte & 0x1fU, continuation};
  if (byte < 0xf0)
    return Lead{3, byte & 0x0fU, {byte == 0xe0 ? 0xa0U : 0x80U, byte == 0xed ? 0x9fU : 0xbfU}};
  if (byte < 0xf5)
    return Lead{4, byte & 0x07U, {byte == 0xf0 ? 0x90U : 0x80U, byte == 0xf4 ? 0x8fU : 0xbfU}};
  return std::nullopt;
}

}  // namespace

Character first_character(std::string_view text) {
  const auto lead = classify(byte_at(text, 0));
  if (!lead) return {text.substr(0, 1), std::nullopt};
  char32_t code_point = lead->bits;
  for (std::size_t i = 1; i < lead->length; ++i) {
    const CodePointRange& allowed = i == 1 ? lead->second : continuation;
    if (i == text.size() || !contains(allowed, byte_at(text, i)))
      return {text.substr(0, i), std::nullopt};
    code_point = (code_point << 6) | (byte_at(text, i) & 0x3fU);
  }
  return {text.substr(0, lead->length), code_point};
}

}  // namespace redlock
