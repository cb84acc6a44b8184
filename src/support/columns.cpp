#include "support/columns.hpp"

#include <algorithm>
#include <array>

namespace redlock {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

/// The blocks of combining marks and variation selectors. Unicode has more marks, among the letters
/// of their scripts; where one of those is used, a line may come out too short, never too long.
constexpr std::array<Range, 7> without_width{{
    {0x0300, 0x036f},
    {0x0483, 0x0489},
    {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff},
    {0x20d0, 0x20ff},
    {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f},
}};

/// Wide and fullwidth characters (UAX #11), by blocks.
constexpr std::array<Range, 15> wide{{
    {0x1100, 0x115f},
    {0x231a, 0x231b},
    {0x23e9, 0x23ec},
    {0x2705, 0x2705},
    {0x2728, 0x2728},
    {0x274c, 0x274e},
    {0x2753, 0x2757},
    {0x2e80, 0x303e},
    {0x3041, 0xa4cf},
    {0xac00, 0xd7a3},
    {0xf900, 0xfaff},
    {0xfe30, 0xfe6f},
    {0xff00, 0xff60},
    {0xffe0, 0xffe6},
    {0x1f300, 0x3fffd},
}};

template <std::size_t count>
bool among(const std::array<Range, count>& ranges, char32_t code_point) {
  return std::ranges::any_of(ranges, [=](const Range& range) {
    return range.first <= code_point && code_point <= range.last;
  });
}

struct Character {
  std::size_t bytes;
  std::size_t columns;
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length == 1 || length > text.size()) return {1, 1};
  char32_t code_point = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {1, 1};
    code_point = (code_point << 6U) | (byte(i) & 0x3fU);
  }
  if (among(without_width, code_point)) return {length, 0};
  return {length, among(wide, code_point) ? std::size_t{2} : std::size_t{1}};
}

/// How many bytes of the text fit into `width` columns.
std::size_t fitting(std::string_view text, std::size_t width) {
  std::size_t bytes = 0;
  std::size_t used = 0;
  while (bytes < text.size()) {
    const Character next = first_character(text.substr(bytes));
    used += next.columns;
    if (used > width) break;
    bytes += next.bytes;
  }
  return bytes;
}

std::string_view without_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character next = first_character(text);
    columns += next.columns;
    text.remove_prefix(next.bytes);
  }
  return columns;
}

std::vector<std::string> fold(std::string_view text, std::size_t width) {
  width = std::max<std::size_t>(width, 2);  // the widest character
  std::vector<std::string> lines;
  for (;;) {
    std::size_t end = fitting(text, width);
    if (end == text.size()) break;
    const std::size_t blank = text.rfind(' ', end);
    if (blank != std::string_view::npos && blank > 0) end = blank;
    const std::string_view line = text.substr(0, end);
    lines.emplace_back(line.substr(0, line.find_last_not_of(' ') + 1));
    text = without_blanks(text.substr(end));
  }
  if (lines.empty() || !text.empty()) lines.emplace_back(text);
  return lines;
}

}  // namespace redlock
