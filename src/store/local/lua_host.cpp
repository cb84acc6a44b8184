#include "store/local/lua_host.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <lua.hpp>
#include <new>
#include <utility>

#include "support/digest.hpp"

// Lua is compiled as C, and raises errors by longjmp, which runs no destructors. So a function that
// Lua calls, or that may raise an error, keeps objects with destructors in the host or the job, not
// on the stack. Nor may an exception leave it into Lua's frames (LuaHost::guard).

namespace redlock::local {
namespace {

/// Lua collects garbage when its memory reaches this percentage of what it was after the last
/// collection. A run produces little garbage.
constexpr int garbage_pause = 400;

// --- Values between Lua and Redis ---

void push_text(lua_State* lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
}

/// The string (or number) at `index`, valid while it is on the stack.
std::string_view text_at(lua_State* lua, int index) {
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

/// Pushes the value that redis.call returns to a script for this reply.
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

/// math.max and math.min.
template <class Better>
int push_best(lua_State* lua, Better is_better) {
  const int count = lua_gettop(lua);
  lua_Number best = luaL_checknumber(lua, 1);
  for (int i = 2; i <= count; ++i) {
    const lua_Number number = luaL_checknumber(lua, i);
    if (is_better(number, best)) best = number;
  }
  lua_pushnumber(lua, best);
  return 1;
}

/// Pushes the functions of `math` that the scripts use. The whole library would need libm, which
/// every start would have to load.
void push_math(lua_State* lua) {
  constexpr std::array<luaL_Reg, 3> functions{{
      {"floor",
       [](lua_State* caller) {
         lua_pushnumber(caller, std::floor(luaL_checknumber(caller, 1)));
         return 1;
       }},
      {"max", [](lua_State* caller) { return push_best(caller, std::greater<>()); }},
      {"min", [](lua_State* caller) { return push_best(caller, std::less<>()); }},
  }};
  lua_newtable(lua);
  for (const luaL_Reg& function : functions) {
    lua_pushcfunction(lua, function.func);
    lua_setfield(lua, -2, function.name);
  }
  lua_pushnumber(lua, std::numeric_limits<lua_Number>::infinity());
  lua_setfield(lua, -2, "huge");
}

/// Converts to an integer of 64 bits. A lock file may contain any score, so a script may compute a
/// number out of range.
std::int64_t without_fraction(lua_Number number) {
  constexpr lua_Number limit = 9223372036854775808.0;  // 2^63
  if (!(number >= -limit && number < limit)) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(number);
}

/// Converts the value on top of the stack to the reply that a client would get. Leaves the stack
/// unchanged.
void read_reply(lua_State* lua, Reply& reply) {
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
      reply.type = Reply::Type::text;
      reply.text = text_at(lua, -1);
      return;
    case LUA_TNUMBER:
      reply.type = Reply::Type::integer;
      reply.integer = without_fraction(lua_tonumber(lua, -1));
      return;
    case LUA_TTABLE:
      break;
    default:
      return;
  }

  luaL_checkstack(lua, 2, "reply");
  lua_getfield(lua, -1, "err");
  const bool is_error = lua_isstring(lua, -1) != 0;
  if (is_error) reply.text = text_at(lua, -1);
  reply.type = is_error ? Reply::Type::error : Reply::Type::array;
  lua_pop(lua, 1);
  if (!is_error) reply.elements.reserve(lua_objlen(lua, -1));
  for (int i = 1; !is_error; ++i) {
    lua_rawgeti(lua, -1, i);
    const bool is_end = lua_isnil(lua, -1);
    if (!is_end) read_reply(lua, reply.elements.emplace_back());
    lua_pop(lua, 1);
    if (is_end) return;
  }
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

/// Returns the result of `work`. An exception is stored, and rethrown by run().
template <class Work>
int LuaHost::guard(lua_State* lua, Work work) {
  try {
    return work();
  } catch (const std::exception&) {
    exception_ = std::current_exception();
  }
  lua_pushliteral(lua, "an exception");
  return lua_error(lua);
}

LuaHost& LuaHost::of(lua_State* lua) {
  return *static_cast<LuaHost*>(lua_touserdata(lua, lua_upvalueindex(1)));
}

int LuaHost::set_up(lua_State* lua) {
  for (const lua_CFunction open : {luaopen_base, luaopen_string, luaopen_table}) {
    lua_pushcfunction(lua, open);
    lua_call(lua, 0, 0);
  }
  push_math(lua);
  lua_setglobal(lua, "math");
  lua_newtable(lua);
  const std::array<luaL_Reg, 4> functions{{
      {"call", [](lua_State* caller) { return of(caller).call(caller, /*raise=*/true); }},
      {"pcall", [](lua_State* caller) { return of(caller).call(caller, /*raise=*/false); }},
      {"sha1hex", [](lua_State* caller) { return of(caller).sha1hex(caller); }},
      {"error_reply",
       [](lua_State* caller) {
         push_single_field(caller, "err", text_at(caller, 1));
         return 1;
       }},
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

bool LuaHost::read_words(lua_State* lua) {
  const int count = lua_gettop(lua);
  words_.clear();
  numbers_.clear();
  numbers_.reserve(static_cast<std::size_t>(count));  // words_ points into them
  for (int i = 1; i <= count; ++i) {
    switch (lua_type(lua, i)) {
      case LUA_TNUMBER:
        words_.push_back(numbers_.emplace_back(write_number(lua_tonumber(lua, i))));
        break;
      case LUA_TSTRING:
        words_.push_back(text_at(lua, i));
        break;
      default:
        return false;
    }
  }
  return true;
}

int LuaHost::call(lua_State* lua, bool raise) {
  return guard(lua, [this, lua, raise] {
    reply_ = read_words(lua)
                 ? execute(*keyspace_, words_)
                 : error_reply("ERR Lua redis lib command arguments must be strings or integers");
    push_reply(lua, reply_);
    return raise && reply_.type == Reply::Type::error ? lua_error(lua) : 1;
  });
}

int LuaHost::sha1hex(lua_State* lua) {
  return guard(lua, [this, lua] {
    reply_ = text_reply(sha1_hex(text_at(lua, 1)));
    push_reply(lua, reply_);
    return 1;
  });
}

void LuaHost::push_compiled(lua_State* lua, std::string_view script) {
  const auto known = std::ranges::find_if(compiled_, [&](const Compiled& each) {
    return each.script.data() == script.data() && each.script.size() == script.size();
  });
  if (known != compiled_.end()) {
    lua_rawgeti(lua, LUA_REGISTRYINDEX, known->reference);
    return;
  }
  // Loading produces no garbage, so a collection would be wasted.
  lua_gc(lua, LUA_GCSTOP, 0);
  const int status = luaL_loadbuffer(lua, script.data(), script.size(), "@user_script");
  lua_gc(lua, LUA_GCRESTART, 0);
  if (status != 0) lua_error(lua);
  lua_pushvalue(lua, -1);
  const int reference = luaL_ref(lua, LUA_REGISTRYINDEX);
  compiled_.push_back({script, reference});
}

int LuaHost::run_job(lua_State* lua) {
  Job& job = *static_cast<Job*>(lua_touserdata(lua, 1));
  return job.host.guard(lua, [lua, &job] {
    push_list(lua, job.keys);
    lua_setglobal(lua, "KEYS");
    push_list(lua, job.arguments);
    lua_setglobal(lua, "ARGV");
    job.host.push_compiled(lua, job.script);
    lua_call(lua, 0, 1);
    read_reply(lua, job.reply);
    return 0;
  });
}

Reply LuaHost::run(Keyspace& keyspace, std::string_view script, Arguments keys,
                   Arguments arguments) {
  if (!lua_) {
    std::unique_ptr<lua_State, Close> made(luaL_newstate());
    if (!made || lua_cpcall(made.get(), set_up, this) != 0) throw std::bad_alloc();
    lua_ = std::move(made);
  }

  keyspace_ = &keyspace;
  Job job{*this, script, keys, arguments, {}};
  const bool failed = lua_cpcall(lua_.get(), run_job, &job) != 0;
  if (exception_) {
    lua_settop(lua_.get(), 0);
    std::rethrow_exception(std::exchange(exception_, nullptr));
  }
  if (failed) {
    // The error is redis.call's `{err = …}`, or a text of Lua.
    job.reply = {};
    read_reply(lua_.get(), job.reply);
    if (job.reply.type != Reply::Type::error) job.reply = error_reply("ERR " + job.reply.text);
  }
  lua_settop(lua_.get(), 0);
  return std::move(job.reply);
}

}  // namespace redlock::local
