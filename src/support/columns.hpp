#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redlock {

/// The width in terminal columns of UTF-8 text without control characters: none for a combining
/// mark, two for a wide character. A byte that is not UTF-8 counts as one.
std::size_t columns_of(std::string_view text);

/// The longest beginning of the text that takes at most `width` columns.
std::string_view first_columns(std::string_view text, std::size_t width);

/// The text in at most `width` columns, at least 8. A text that is too long ends with `...`,
/// between two words if that leaves half of it: no part of a pid or a name looks like the whole.
std::string shortened_to_columns(std::string_view text, std::size_t width);

/// Folds text into lines of at most `width` columns, at blanks where possible. A width below 2
/// counts as 2. Returns at least one line.
std::vector<std::string> fold(std::string_view text, std::size_t width);

}  // namespace redlock
