#include "cli/spelling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace redlock::cli {
namespace {

constexpr std::size_t max_distance = 2;

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
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
  std::size_t least = max_distance + 1;
  for (const std::string_view name : names) {
    // A word from a file may be very long; skip the distance for a much longer one.
    if (word.size() > name.size() + max_distance) continue;
    // Almost every word is close to a short name, so at least half of the name must match.
    const std::size_t letters = edit_distance(word, name);
    if (letters * 2 > name.size() || letters >= least) continue;
    nearest = name;
    least = letters;
  }
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace redlock::cli
