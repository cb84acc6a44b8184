#include "cli/spelling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace redlock::cli {
namespace {

/// Almost every word is within two letters of a short name.
constexpr std::size_t short_name = 5;

constexpr std::size_t max_distance(std::string_view name) {
  return name.size() - std::min(name.find_first_not_of('-'), name.size()) <= short_name ? 1 : 2;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before;  // the row above `above`
  std::vector<std::size_t> above(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::vector<std::size_t> row{i + 1};
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = above[j] + (a[i] == b[j] ? 0 : 1);
      row.push_back(std::min({replaced, above[j + 1] + 1, row[j] + 1}));
      const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) row.back() = std::min(row.back(), before[j - 1] + 1);
    }
    before = std::exchange(above, std::move(row));
  }
  return above.back();
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  // A prefix of exactly one name most likely means that name.
  const auto begins_with_word = [&](std::string_view name) {
    return !word.empty() && name.starts_with(word);
  };
  const auto begun = std::find_if(names.begin(), names.end(), begins_with_word);
  if (begun != names.end() && std::none_of(begun + 1, names.end(), begins_with_word)) {
    return fmt::format("; did you mean '{}'?", *begun);
  }
  std::string_view nearest;
  std::size_t least = std::string_view::npos;
  for (const std::string_view name : names) {
    // A word from a file may be very long; skip the distance for a much longer one.
    if (word.size() > name.size() + max_distance(name)) continue;
    const std::size_t letters = edit_distance(word, name);
    if (letters > max_distance(name) || letters >= least) continue;
    nearest = name;
    least = letters;
  }
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace redlock::cli
