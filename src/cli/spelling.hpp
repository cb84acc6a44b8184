#pragma once

#include <span>
#include <string>
#include <string_view>

namespace redlock::cli {

/// A lone `-` is a word.
constexpr bool looks_like_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

/// `; did you mean 'X'?` with the name that is nearest to `word`; empty when all of them differ in
/// more than two letters, or in most of their letters.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace redlock::cli
