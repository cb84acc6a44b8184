#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace redlock::cli {

/// Whether the word begins with a dash. A lone `-` is an ordinary word.
constexpr bool looks_like_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

/// The number of letters that must be changed, added, removed or swapped with their neighbour to
/// turn one word into the other (optimal string alignment distance).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// `; did you mean 'X'?` with the name nearest to `word`. Empty if every name differs in more than
/// two letters, or a short one in more than one.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace redlock::cli
