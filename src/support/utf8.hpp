#pragma once

#include <optional>
#include <string_view>

namespace redlock {

/// Code points, both ends included.
struct CodePointRange {
  char32_t first;
  char32_t last;
};

constexpr bool contains(const CodePointRange& range, char32_t code_point) {
  return range.first <= code_point && code_point <= range.last;
}

/// The first character of a text: its bytes (of the text's lifetime), and what they stand for when
/// they are UTF-8.
struct Character {
  std::string_view bytes;
  std::optional<char32_t> code_point;
};

/// For a text that is not empty. When the bytes are not UTF-8, takes as many as could have begun a
/// character (at least one), as decoders are advised to: The Unicode Standard, section 3.9, U+FFFD
/// Substitution of Maximal Subparts.
Character first_character(std::string_view text);

}  // namespace redlock
