#pragma once

#include <lua5.1/lua.hpp>

#include <string>
#include <string_view>

#include "store/reply.hpp"

namespace redlock::local {

// Values between Lua and Redis. Debian's C++ build of Lua raises its errors as exceptions, so that objects on our stack are destroyed.

void push_text(lua_State* lua, std::string_view text);

/// What redis.call gives to a script for this reply.
void push_reply(lua_State* lua, const Reply& reply);

/// `{err = …}` for the message: with its code when it begins with `-CODE `, else with the code ERR.
void push_error(lua_State* lua, std::string_view message);

/// The value on top of the stack as the reply that a client gets for it. Leaves the stack as it was.
Reply to_reply(lua_State* lua);

/// The string (or number) at `index`.
std::string text_at(lua_State* lua, int index);

}  // namespace redlock::local
