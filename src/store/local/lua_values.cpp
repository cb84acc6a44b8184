#include "store/local/lua_values.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "store/local/command_parts.hpp"

namespace redlock::local {
namespace {

/// Deeper tables than any script of ours returns; a table may hold itself.
constexpr int deepest = 32;

std::int64_t without_fraction(lua_Number number) {
  constexpr lua_Number limit = 9223372036854775808.0;  // 2^63
  // As the conversion instruction of x86-64 has it, and so Redis there.
  if (!(number >= -limit && number < limit)) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(number);
}

std::string in_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return text;
}

/// The string under `name` in the table on top of the stack.
std::optional<std::string> field(lua_State* lua, const char* name) {
  lua_getfield(lua, -1, name);
  std::optional<std::string> text;
  if (lua_type(lua, -1) == LUA_TSTRING) text = text_at(lua, -1);
  lua_pop(lua, 1);
  return text;
}

Reply reply_at_depth(lua_State* lua, int depth);

Reply table_reply(lua_State* lua, int depth) {
  if (auto error = field(lua, "err")) return error_reply(in_one_line(std::move(*error)));
  if (auto status = field(lua, "ok")) return status_reply(in_one_line(std::move(*status)));
  if (depth >= deepest || lua_checkstack(lua, 4) == 0) return error_reply("ERR reached lua stack limit");
  std::vector<Reply> elements;
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    if (lua_isnil(lua, -1)) break;
    elements.push_back(reply_at_depth(lua, depth + 1));
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
  return array_reply(std::move(elements));
}

Reply reply_at_depth(lua_State* lua, int depth) {
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
      return text_reply(text_at(lua, -1));
    case LUA_TNUMBER:
      return integer_reply(without_fraction(lua_tonumber(lua, -1)));
    case LUA_TBOOLEAN:
      return lua_toboolean(lua, -1) != 0 ? integer_reply(1) : nil_reply();
    case LUA_TTABLE:
      return table_reply(lua, depth);
    default:
      return nil_reply();
  }
}

void push_single_field(lua_State* lua, const char* name, std::string_view text) {
  lua_createtable(lua, 0, 1);
  push_text(lua, text);
  lua_setfield(lua, -2, name);
}

}  // namespace

void push_text(lua_State* lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
}

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

void push_error(lua_State* lua, std::string_view message) {
  const std::size_t space = message.find(' ');
  const bool has_code = message.starts_with('-') && space != std::string_view::npos;
  std::string text = has_code ? std::string() : "ERR ";
  text += message.substr(message.starts_with('-') ? 1 : 0);
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n')) text.pop_back();
  push_single_field(lua, "err", text);
}

Reply to_reply(lua_State* lua) {
  return reply_at_depth(lua, 0);
}

std::string text_at(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* text = lua_tolstring(lua, index, &size);
  return {text, size};
}

}  // namespace redlock::local
