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

  /// The columns that are not empty, at a terminal of that width.
  struct Layout {
    struct Column {
      std::size_t index;
      std::size_t width;
      std::size_t min_width;
    };
    std::vector<Column> columns;
    std::size_t width;
  };
  [[nodiscard]] Layout layout(std::size_t width) const;

  /// The lines of the headings, and of one row of size(). No line has blanks at its end.
  [[nodiscard]] std::vector<std::string> headings(const Layout& layout) const;
  [[nodiscard]] std::vector<std::string> row(std::size_t index, const Layout& layout) const;
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<std::string> below;
  };

  std::vector<std::string> headings_;
  std::vector<Row> rows_;
};

}  // namespace redlock::output
