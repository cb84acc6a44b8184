#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace redlock {

/// Parses a whole decimal number, with a minus sign if the type is signed; nullopt for any other
/// text.
template <class Number = std::int64_t>
std::optional<Number> whole_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace redlock
