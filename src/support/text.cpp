#include "support/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <system_error>

#include "support/encoding.hpp"

namespace redlock {
namespace {

unsigned byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

/// The bytes that must follow a lead byte. The range of the second one excludes overlong forms,
/// surrogates and everything above U+10FFFF. Source: The Unicode Standard, table 3-7.
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

/// Characters that can mislead a terminal or a reader, beyond C0 and DEL.
bool is_deceptive(char32_t code_point) {
  static constexpr std::array<CodePointRange, 8> ranges{{
      {0x0080, 0x009f},  // C1 controls
      {0x061c, 0x061c},  // Arabic letter mark
      {0x200b, 0x200f},  // zero-width characters, directional marks
      {0x2028, 0x2029},  // line and paragraph separators
      {0x202a, 0x202e},  // bidi embeddings and overrides
      {0x2060, 0x2060},  // word joiner
      {0x2066, 0x2069},  // bidi isolates
      {0xfeff, 0xfeff},  // zero-width no-break space
  }};
  return std::ranges::any_of(
      ranges, [=](const CodePointRange& range) { return contains(range, code_point); });
}

void append_bytes_escaped(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) {
    out += "\\x";
    append_hex(out, static_cast<unsigned char>(byte), 2);
  }
}

void append_escaped(std::string& out, const Character& character) {
  if (!character.code_point) return append_bytes_escaped(out, character.bytes);
  switch (const char32_t code_point = *character.code_point) {
    case U'\n':
      out += "\\n";
      return;
    case U'\t':
      out += "\\t";
      return;
    case U'\r':
      out += "\\r";
      return;
    case U'\\':
      out += "\\\\";
      return;
    default:
      if (is_control(character.bytes.front())) return append_bytes_escaped(out, character.bytes);
      if (!is_deceptive(code_point)) {
        out += character.bytes;
        return;
      }
      out += "\\u";
      append_hex(out, code_point, 4);
  }
}

/// Builds a text by calling `append` with every character of `text`.
template <class Append>
std::string translate(std::string_view text, Append append) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    append(out, character);
    text.remove_prefix(character.bytes.size());
  }
  return out;
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

std::string escape_for_terminal(std::string_view text) {
  return translate(text, append_escaped);
}

std::string to_valid_utf8(std::string_view text) {
  constexpr std::string_view replacement = "\xef\xbf\xbd";
  return translate(text, [=](std::string& out, const Character& character) {
    out += character.code_point ? character.bytes : replacement;
  });
}

std::string shell_quote(std::string_view text) {
  std::string word;
  bool quoted = false;
  const auto quote = [&](bool whether) {
    if (quoted != whether) word += '\'';
    quoted = whether;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\'';
    const bool escapes_in_fish = text[i] == '\\' && (next == '\\' || next == '\'');
    const bool escaped = text[i] == '\'' || escapes_in_fish;
    quote(!escaped);
    if (escaped) word += '\\';
    word += text[i];
  }
  quote(false);
  return word.empty() ? "''" : word;
}

std::string shortened(std::string_view text, std::size_t max_bytes) {
  constexpr std::string_view ellipsis = "…";
  if (text.size() <= max_bytes) return std::string(text);
  std::size_t kept = 0;
  for (;;) {
    const std::size_t next = kept + first_character(text.substr(kept)).bytes.size();
    if (next + ellipsis.size() > max_bytes) break;
    kept = next;
  }
  return std::string(text.substr(0, kept)).append(ellipsis);
}

std::string shell_word(std::string_view text) {
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter_or_digit(c) ||
           std::string_view("-_./:=@,+%").find(c) != std::string_view::npos;
  });
  if (is_plain) return std::string(text);
  // Characters that a terminal would interpret are shown escaped. A backslash alone is harmless,
  // and must stay as it is so that the text can be typed again.
  std::string without_backslashes(text);
  std::erase(without_backslashes, '\\');
  const bool is_safe = escape_for_terminal(without_backslashes) == without_backslashes;
  return shell_quote(is_safe ? text : escape_for_terminal(text));
}

std::string_view next_word(std::string_view& rest, char separator) {
  const std::string_view word = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  return word;
}

std::string one_of(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  return lower;
}

std::string errno_text(int error) {
  std::string text = std::generic_category().message(error);
  if (!text.empty() && text.front() >= 'A' && text.front() <= 'Z')
    text.front() = static_cast<char>(text.front() - 'A' + 'a');
  return text;
}

}  // namespace redlock
