#include "output/table.hpp"

#include <algorithm>
#include <numeric>

#include "support/columns.hpp"
#include "support/text.hpp"

namespace redlock::output {
namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t indent = 2;

/// Longer words are broken, so that a single word cannot take the room of all other columns.
constexpr std::size_t max_unbroken = 12;

using Column = Table::Layout::Column;

/// The width of the widest word, in terminal columns.
std::size_t max_word_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    width = std::max(width, columns_of(next_word(text, ' ')));
  }
  return width;
}

std::size_t total_width(const std::vector<Column>& columns) {
  if (columns.empty()) return 0;
  return std::accumulate(columns.begin(), columns.end(), gap * (columns.size() - 1),
                         [](std::size_t sum, const Column& column) { return sum + column.width; });
}

/// Narrows the widest column that is not at its minimum, until all columns fit or none can shrink.
void narrow(std::vector<Column>& columns, std::size_t width) {
  for (std::size_t all = total_width(columns); all > width; --all) {
    Column* widest = nullptr;
    for (Column& column : columns) {
      if (column.width <= column.min_width) continue;
      if (widest == nullptr || column.width > widest->width) widest = &column;
    }
    if (widest == nullptr) return;
    --widest->width;
  }
}

std::vector<std::string> folded_row(const std::vector<std::string>& cells,
                                    const std::vector<Column>& columns) {
  std::vector<std::vector<std::string>> folded;
  std::size_t height = 0;
  for (const Column& column : columns) {
    folded.push_back(fold(cells[column.index], column.width));
    height = std::max(height, folded.back().size());
  }
  std::vector<std::string> lines(height);
  std::size_t start = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (std::size_t line = 0; line < folded[i].size(); ++line) {
      if (folded[i][line].empty()) continue;
      lines[line].append(start - columns_of(lines[line]), ' ').append(folded[i][line]);
    }
    start += columns[i].width + gap;
  }
  return lines;
}

}  // namespace

void Table::add(std::vector<std::string> cells, std::vector<std::string> below) {
  rows_.push_back({std::move(cells), std::move(below)});
}

Table::Layout Table::layout(std::size_t width) const {
  Layout layout{{}, width};
  for (std::size_t i = 0; i < headings_.size(); ++i) {
    Column column{i, 0, columns_of(headings_[i])};
    for (const Row& row : rows_) {
      column.width = std::max(column.width, columns_of(row.cells[i]));
      const std::size_t unbroken = std::min(max_word_width(row.cells[i]), max_unbroken);
      column.min_width = std::max(column.min_width, unbroken);
    }
    if (column.width == 0) continue;
    column.width = std::max(column.width, columns_of(headings_[i]));
    layout.columns.push_back(column);
  }
  if (dispensable_ && total_width(layout.columns) > width)
    std::erase_if(layout.columns, [&](const Column& one) { return one.index == *dispensable_; });
  narrow(layout.columns, width);
  return layout;
}

std::vector<std::string> Table::headings(const Layout& layout) const {
  return folded_row(headings_, layout.columns);
}

std::vector<std::string> Table::row(std::size_t index, const Layout& layout) const {
  const Row& row = rows_[index];
  std::vector<std::string> lines = folded_row(row.cells, layout.columns);
  const std::size_t room =
      layout.width == any_width ? any_width : layout.width - std::min(layout.width, indent);
  for (const std::string& text : row.below) {
    for (const std::string& line : fold(text, room)) {
      lines.push_back(std::string(indent, ' ') + line);
    }
  }
  return lines;
}

}  // namespace redlock::output
