#include "support/columns.hpp"

#include <algorithm>
#include <array>

#include "support/text.hpp"

namespace redlock {
namespace {

/// The blocks of combining marks and variation selectors. Unicode has more marks within the blocks
/// of scripts; a line that contains one of those may come out too short, but never too long.
constexpr std::array<CodePointRange, 7> without_width{{
    {0x0300, 0x036f},
    {0x0483, 0x0489},
    {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff},
    {0x20d0, 0x20ff},
    {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f},
}};

/// Wide and fullwidth characters (UAX #11), by blocks.
constexpr std::array<CodePointRange, 40> wide{{
    {0x1100, 0x115f}, {0x231a, 0x231b}, {0x23e9, 0x23ec}, {0x23f0, 0x23f0}, {0x23f3, 0x23f3},
    {0x25fd, 0x25fe}, {0x2614, 0x2615}, {0x2648, 0x2653}, {0x267f, 0x267f}, {0x2693, 0x2693},
    {0x26a1, 0x26a1}, {0x26aa, 0x26ab}, {0x26bd, 0x26be}, {0x26c4, 0x26c5}, {0x26ce, 0x26ce},
    {0x26d4, 0x26d4}, {0x26ea, 0x26ea}, {0x26f2, 0x26f3}, {0x26f5, 0x26f5}, {0x26fa, 0x26fa},
    {0x26fd, 0x26fd}, {0x2705, 0x2705}, {0x270a, 0x270b}, {0x2728, 0x2728}, {0x274c, 0x274e},
    {0x2753, 0x2757}, {0x2795, 0x2797}, {0x27b0, 0x27b0}, {0x27bf, 0x27bf}, {0x2b1b, 0x2b1c},
    {0x2b50, 0x2b50}, {0x2b55, 0x2b55}, {0x2e80, 0x303e}, {0x3041, 0xa4cf}, {0xac00, 0xd7a3},
    {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x3fffd},
}};

template <std::size_t count>
bool among(const std::array<CodePointRange, count>& ranges, char32_t code_point) {
  return std::ranges::any_of(
      ranges, [=](const CodePointRange& range) { return contains(range, code_point); });
}

std::size_t columns_of(const Character& character) {
  if (!character.code_point) return character.bytes.size();
  if (*character.code_point < without_width.front().first) return 1;  // the common case
  if (among(without_width, *character.code_point)) return 0;
  return among(wide, *character.code_point) ? 2 : 1;
}

std::string_view without_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character next = first_character(text);
    columns += columns_of(next);
    text.remove_prefix(next.bytes.size());
  }
  return columns;
}

std::string_view first_columns(std::string_view text, std::size_t width) {
  std::size_t bytes = 0;
  std::size_t used = 0;
  while (bytes < text.size()) {
    const Character next = first_character(text.substr(bytes));
    used += columns_of(next);
    if (used > width) break;
    bytes += next.bytes.size();
  }
  return text.substr(0, bytes);
}

std::string shortened_to_columns(std::string_view text, std::size_t width) {
  constexpr std::string_view ellipsis = "...";
  width = std::max<std::size_t>(width, 8);
  if (columns_of(text) <= width) return std::string(text);
  std::string_view kept = first_columns(text, width - ellipsis.size());
  if (const std::size_t blank = kept.rfind(' ');
      blank != std::string_view::npos && blank >= kept.size() / 2) {
    kept = kept.substr(0, blank + 1);
  }
  return std::string(kept).append(ellipsis);
}

std::vector<std::string> fold(std::string_view text, std::size_t width) {
  width = std::max<std::size_t>(width, 2);  // room for the widest character
  std::vector<std::string> lines;
  for (;;) {
    std::size_t end = first_columns(text, width).size();
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
