#pragma once

#include <string>

/// Which outcomes the conditions of the scripts had in this process. The linker inserts it between
/// the host of the scripts and Lua (--wrap=luaL_loadbuffer). It does nothing until it is switched
/// on: then Lua runs the copies of the scripts that conditions.py made. What clients send to
/// servers, and its digest, does not change.
namespace redlock::sim::coverage {

/// To be called before the first script.
void switch_on();

/// Writes a line for each outcome that was seen: the condition's number, a space, and 1 for true or
/// 0 for false. -> false: the file cannot be written
bool write(const std::string& path);

}  // namespace redlock::sim::coverage
