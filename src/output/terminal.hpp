#pragma once

#include <cstddef>

namespace redlock::output {

/// Whether text on this descriptor can be replaced: a terminal, and not TERM=dumb.
bool can_draw_on(int fd);

struct TerminalSize {
  std::size_t rows;
  std::size_t columns;
};

/// The size of the terminal at this descriptor; 24 by 80 where it does not tell.
TerminalSize terminal_size(int fd);

/// The width for a table: that of a terminal, where lines are folded, else any_width.
std::size_t width_of_output(int fd);

}  // namespace redlock::output
