#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace redlock {

/// A range of code points, both ends included.
struct CodePointRange {
  char32_t first;
  char32_t last;
};

constexpr bool contains(const CodePointRange& range, char32_t code_point) {
  return range.first <= code_point && code_point <= range.last;
}

/// The first character of a text: its bytes, which refer to that text, and the code point if they
/// are UTF-8.
struct Character {
  std::string_view bytes;
  std::optional<char32_t> code_point;
};

/// The first character of a text, which must not be empty. If the bytes are not UTF-8, the
/// character has as many of them as could begin one, but at least one: The Unicode Standard,
/// section 3.9, U+FFFD Substitution of Maximal Subparts.
Character first_character(std::string_view text);

/// Makes untrusted text (from servers, keys, other users' notes) safe to show on a terminal. C0,
/// DEL, C1, bidi controls, line and paragraph separators, zero-width characters and bytes that are
/// not UTF-8 become visible escapes (`\n`, `\x1b`, `\u202e`). A backslash becomes `\\`, so that the
/// result is unambiguous. Everything else passes unchanged.
std::string escape_for_terminal(std::string_view text);

/// Replaces bytes that are not UTF-8 by U+FFFD, for JSON, which only allows UTF-8.
std::string to_valid_utf8(std::string_view text);

/// `text`, cut between characters and ended with `…` if it is longer than `max_bytes`. The result
/// has at most `max_bytes` bytes.
std::string shortened(std::string_view text, std::size_t max_bytes);

/// `text` as one word that POSIX shells, zsh and fish read alike, in single quotes: `it's` becomes
/// `'it'\''s'`. Within them fish takes a backslash before another, or before a quote, for an
/// escape, so such a one is outside, too.
std::string shell_quote(std::string_view text);

/// `text` as a user would type it in a shell: quoted only if necessary, with escapes for characters
/// that a terminal would interpret.
std::string shell_word(std::string_view text);

/// Whether `c` is an ASCII letter or digit.
constexpr bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Whether `c` is an ASCII control character (C0 or DEL).
constexpr bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
}

/// Removes the word before the first separator, and that separator, from the front of `rest`.
/// Returns the word; all of `rest` if it has no separator.
std::string_view next_word(std::string_view& rest, char separator);

/// `a, b or c`.
std::string one_of(std::span<const std::string_view> words);

/// The text with ASCII letters in lower case.
std::string lower_case(std::string_view text);

/// The meaning of an errno, to be used within a sentence: `permission denied`.
std::string errno_text(int error);

}  // namespace redlock
