#include "store/local/lua_host.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <lua5.1/lua.hpp>
#include <new>
#include <vector>

#include "support/digest.hpp"

// Debian's C++ build of Lua raises its errors as exceptions, so that objects on our stack are
// destroyed.

namespace redlock::local {
namespace {

/// Lua collects its garbage when it has so many per cent of what was left the last time; a run
/// leaves little.
constexpr int garbage_pause = 400;

// --- Values between Lua and Redis ---

void push_text(lua_State* lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
}

/// The string (or number) at `index`.
std::string text_at(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* text = luaL_checklstring(lua, index, &size);
  return {text, size};
}

void push_list(lua_State* lua, Arguments texts) {
  lua_createtable(lua, static_cast<int>(texts.size()), 0);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    push_text(lua, texts[i]);
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
}

/// Pushes `{name = text}`.
void push_single_field(lua_State* lua, const char* name, std::string_view text) {
  lua_createtable(lua, 0, 1);
  push_text(lua, text);
  lua_setfield(lua, -2, name);
}

/// Pushes what redis.call gives to a script for this reply.
void push_reply(lua_State* lua, const Reply& reply) {
  luaL_checkstack(lua, 3, "reply");
  switch (reply.type) {
    case Reply::Type::nil:
      lua_pushboolean(lua, 0);
      break;
    case Reply::Type::integer:
      lua_pushnumber(lua, static_cast<lua_Number>(reply.integer));
      break;
    case Reply::Type::text:
      push_text(lua, reply.text);
      break;
    case Reply::Type::status:
      push_single_field(lua, "ok", reply.text);
      break;
    case Reply::Type::error:
      push_single_field(lua, "err", reply.text);
      break;
    case Reply::Type::array:
      lua_createtable(lua, static_cast<int>(reply.elements.size()), 0);
      for (std::size_t i = 0; i < reply.elements.size(); ++i) {
        push_reply(lua, reply.elements[i]);
        lua_rawseti(lua, -2, static_cast<int>(i + 1));
      }
      break;
  }
}

/// A lock file may hold any score, so a script may compute what is no integer of 64 bits.
std::int64_t without_fraction(lua_Number number) {
  constexpr lua_Number limit = 9223372036854775808.0;  // 2^63
  if (!(number >= -limit && number < limit)) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(number);
}

/// The value on top of the stack as the reply that a client gets for it. Leaves the stack as it
/// was.
Reply to_reply(lua_State* lua) {
  if (lua_type(lua, -1) == LUA_TSTRING) return text_reply(text_at(lua, -1));
  if (lua_type(lua, -1) == LUA_TNUMBER) {
    return integer_reply(without_fraction(lua_tonumber(lua, -1)));
  }
  if (!lua_istable(lua, -1)) return {};

  luaL_checkstack(lua, 2, "reply");
  lua_getfield(lua, -1, "err");
  const bool is_error = lua_isstring(lua, -1) != 0;
  const std::string error = is_error ? text_at(lua, -1) : std::string();
  lua_pop(lua, 1);
  if (is_error) return error_reply(error);

  std::vector<Reply> elements;
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    const bool is_end = lua_isnil(lua, -1);
    if (!is_end) elements.push_back(to_reply(lua));
    lua_pop(lua, 1);
    if (is_end) return array_reply(std::move(elements));
  }
}

// --- The redis library, but for call and pcall ---

int redis_sha1hex(lua_State* lua) {
  push_text(lua, sha1_hex(text_at(lua, 1)));
  return 1;
}

int redis_error_reply(lua_State* lua) {
  push_single_field(lua, "err", text_at(lua, 1));
  return 1;
}

/// The words of a command, or nothing when one is neither a string nor a number.
std::vector<std::string> words_of_call(lua_State* lua) {
  std::vector<std::string> words;
  words.reserve(static_cast<std::size_t>(lua_gettop(lua)));
  for (int i = 1; i <= lua_gettop(lua); ++i) {
    const bool is_number = lua_type(lua, i) == LUA_TNUMBER;
    words.push_back(is_number ? write_number(lua_tonumber(lua, i)) : text_at(lua, i));
  }
  return words;
}

}  // namespace

struct LuaHost::Job {
  LuaHost& host;
  std::string_view script;
  Arguments keys;
  Arguments arguments;
  Reply reply;
};

void LuaHost::Close::operator()(lua_State* lua) const {
  lua_close(lua);
}

int LuaHost::set_up(lua_State* lua) {
  for (const lua_CFunction open : {luaopen_base, luaopen_string, luaopen_table, luaopen_math}) {
    lua_pushcfunction(lua, open);
    lua_call(lua, 0, 0);
  }
  lua_newtable(lua);
  const std::array<luaL_Reg, 4> functions{{
      {"call", [](lua_State* caller) { return call(caller, /*raise=*/true); }},
      {"pcall", [](lua_State* caller) { return call(caller, /*raise=*/false); }},
      {"sha1hex", redis_sha1hex},
      {"error_reply", redis_error_reply},
  }};
  for (const luaL_Reg& function : functions) {
    lua_pushvalue(lua, 1);  // the host
    lua_pushcclosure(lua, function.func, 1);
    lua_setfield(lua, -2, function.name);
  }
  lua_setglobal(lua, "redis");
  lua_gc(lua, LUA_GCSETPAUSE, garbage_pause);
  return 0;
}

int LuaHost::call(lua_State* lua, bool raise) {
  const auto* host = static_cast<LuaHost*>(lua_touserdata(lua, lua_upvalueindex(1)));
  const Reply reply = execute(*host->keyspace_, words_of_call(lua));
  push_reply(lua, reply);
  if (raise && reply.type == Reply::Type::error) return lua_error(lua);
  return 1;
}

void LuaHost::push_compiled(lua_State* lua, std::string_view script) {
  const auto known = std::ranges::find(compiled_, script, &Compiled::script);
  if (known != compiled_.end()) {
    lua_rawgeti(lua, LUA_REGISTRYINDEX, known->reference);
    return;
  }
  // What is loaded is no garbage: to look for some meanwhile would be in vain.
  lua_gc(lua, LUA_GCSTOP, 0);
  const int status = luaL_loadbuffer(lua, script.data(), script.size(), "@user_script");
  lua_gc(lua, LUA_GCRESTART, 0);
  if (status != 0) lua_error(lua);
  lua_pushvalue(lua, -1);
  compiled_.push_back({std::string(script), luaL_ref(lua, LUA_REGISTRYINDEX)});
}

int LuaHost::run_job(lua_State* lua) {
  Job& job = *static_cast<Job*>(lua_touserdata(lua, 1));
  push_list(lua, job.keys);
  lua_setglobal(lua, "KEYS");
  push_list(lua, job.arguments);
  lua_setglobal(lua, "ARGV");
  job.host.push_compiled(lua, job.script);
  lua_call(lua, 0, 1);
  job.reply = to_reply(lua);
  return 0;
}

Reply LuaHost::run(Keyspace& keyspace, std::string_view script, Arguments keys,
                   Arguments arguments) {
  if (!lua_) {
    lua_.reset(luaL_newstate());
    if (!lua_ || lua_cpcall(lua_.get(), set_up, this) != 0) throw std::bad_alloc();
  }

  keyspace_ = &keyspace;
  Job job{*this, script, keys, arguments, {}};
  if (lua_cpcall(lua_.get(), run_job, &job) != 0) {
    // The raised error: redis.call's `{err = …}`, or Lua's own text.
    job.reply = to_reply(lua_.get());
    if (job.reply.type != Reply::Type::error) job.reply = error_reply("ERR " + job.reply.text);
  }
  lua_settop(lua_.get(), 0);
  return std::move(job.reply);
}

}  // namespace redlock::local
