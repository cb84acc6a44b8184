#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace redlock::output {

inline constexpr std::size_t any_width = std::numeric_limits<std::size_t>::max();

/// Rows of cells in aligned columns. A column whose cells are all empty is left out. When the table
/// is too wide, one column may be left out; then columns are narrowed, the widest first, and their
/// cells folded.
class Table {
 public:
  /// `dispensable`: the column to leave out if not all fit unfolded.
  explicit Table(std::vector<std::string> headings,
                 std::optional<std::size_t> dispensable = std::nullopt)
      : headings_(std::move(headings)), dispensable_(dispensable) {}

  /// Appends a row, with one cell per heading and `below` as lines of text under it.
  void add(std::vector<std::string> cells, std::vector<std::string> below = {});

  /// The positions and widths of the columns that are not empty, for a given width.
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

  /// The lines of the headings and of the row with this index, without trailing blanks.
  [[nodiscard]] std::vector<std::string> headings(const Layout& layout) const;
  [[nodiscard]] std::vector<std::string> row(std::size_t index, const Layout& layout) const;
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<std::string> below;
  };

  std::vector<std::string> headings_;
  std::optional<std::size_t> dispensable_;
  std::vector<Row> rows_;
};

}  // namespace redlock::output
