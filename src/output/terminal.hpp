#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace redlock::output {

/// Whether text on this descriptor can be redrawn: it is a terminal, and TERM is not `dumb`.
bool can_draw_on(int fd);

struct TerminalSize {
  std::size_t rows;
  std::size_t columns;
};

/// The size of the terminal at this descriptor; 24 by 80 if it reports none.
TerminalSize terminal_size(int fd);

/// The width to fold text to: that of the terminal, or any_width if the descriptor is none.
std::size_t width_of_output(int fd);

/// `lines` as the terminal at this descriptor needs them: in raw mode a newline does not return to
/// the first column. Unchanged if the descriptor is no terminal.
std::string lines_for(int fd, std::string_view lines);

}  // namespace redlock::output
