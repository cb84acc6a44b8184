#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace redlock::output {

inline constexpr std::size_t any_width = std::numeric_limits<std::size_t>::max();

/// Rows of cells in aligned columns. A column in which all cells are empty is left out. Cells are
/// folded within their columns where the width does not suffice, the widest first.
class Table {
 public:
  explicit Table(std::vector<std::string> headings) : headings_(std::move(headings)) {}

  /// A row has a cell for each heading; `below` are lines of text under it.
  void add(std::vector<std::string> cells, std::vector<std::string> below = {});

  /// The lines of the headings and of each row, for a terminal of that width. No line has blanks at
  /// its end.
  struct Lines {
    std::vector<std::string> headings;
    std::vector<std::vector<std::string>> rows;
  };
  [[nodiscard]] Lines lines(std::size_t width) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<std::string> below;
  };

  std::vector<std::string> headings_;
  std::vector<Row> rows_;
};

}  // namespace redlock::output
