#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
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

/// Makes text from elsewhere (servers, keys, other people's notes) safe to show on a terminal. C0,
/// DEL, C1, bidi controls, line and paragraph separators, zero-width characters and bytes that are
/// not UTF-8 become visible escapes (`\n`, `\x1b`, `\u202e`). A backslash becomes `\\`, so that the
/// result is unambiguous. Everything else passes unchanged.
std::string escape_for_terminal(std::string_view text);

/// Replaces what is not UTF-8 by U+FFFD: for JSON, which can carry nothing else.
std::string to_valid_utf8(std::string_view text);

/// `text`, or where that is longer than `max_bytes` its beginning with `…`, cut between characters,
/// of at most that many bytes.
std::string shortened(std::string_view text, std::size_t max_bytes);

/// `text` as one word of a POSIX shell, always in single quotes: `it's` becomes `'it'\''s'`.
std::string shell_quote(std::string_view text);

/// `text` as a user would type it in a shell: quoted only where it must be, and escaped where a
/// terminal would act on it.
std::string shell_word(std::string_view text);

/// Whether it is an ASCII letter or digit.
constexpr bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Whether it is a control character of ASCII (C0 or DEL).
constexpr bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
}

/// Takes what stands before the separator off the front of `rest`, and the separator with it; all
/// of it where there is none.
std::string_view next_word(std::string_view& rest, char separator);

/// `a, b or c`.
std::string one_of(std::span<const std::string_view> words);

/// ASCII letters in lower case, all else unchanged.
std::string lower_case(std::string_view text);

/// What an errno means, as a clause in a sentence: `permission denied`.
std::string errno_text(int error);

}  // namespace redlock
