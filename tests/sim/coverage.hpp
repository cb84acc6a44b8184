#pragma once

#include <cstddef>

/// Which lines of the scripts ran, of all that this process runs. It gets between the host of the
/// scripts and Lua by the linker (--wrap=luaL_newstate), and does nothing until it is switched on.
namespace redlock::sim::coverage {

void switch_on();

/// Before each script: whether it is undo, which stands for itself.
void runs(bool undo);

/// Prints how many lines ran, and each that never did. False: none ran, so it was never asked.
bool print();

}  // namespace redlock::sim::coverage
