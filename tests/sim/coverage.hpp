#pragma once

#include <string>

/// How the conditions of the scripts came out, of all that this process runs. It gets between the
/// host of the scripts and Lua by the linker (--wrap=luaL_loadbuffer), and does nothing until it is
/// switched on: then Lua runs the copies of the scripts that conditions.py made. What servers are
/// sent, and know by its digest, stays as it is.
namespace redlock::sim::coverage {

/// Before the first script.
void switch_on();

/// Writes a line for each outcome that was seen: the condition's number, a space, and 1 for true or
/// 0. False: it cannot be written.
bool write(const std::string& path);

}  // namespace redlock::sim::coverage
