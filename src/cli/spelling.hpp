#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace redlock::cli {

/// A lone `-` is a word.
constexpr bool looks_like_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

/// How many letters must be changed, added or left out to turn one word into the other
/// (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// `; did you mean 'X'?` with the name that is nearest to `word`; empty when all of them differ in
/// more than two letters, or in most of their letters.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace redlock::cli
