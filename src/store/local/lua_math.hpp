#pragma once

#include <lua5.1/lua.hpp>

namespace redlock::local {

/// Pushes a table with what scripts get as `math`: abs, ceil, floor, huge, max, min, as in Lua's own library.
///
/// That library would pull in libm, and with it a quarter of all that starting the program takes. So these do without; the two functions
/// that Lua itself needs for `^` and `%` are looked up in libm when a script first uses them.
void push_math(lua_State* lua);

}  // namespace redlock::local
