#include "coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <lua.hpp>
#include <set>
#include <string>
#include <string_view>

#include "store/script.hpp"

namespace {

/// Of one text: those of its lines that ran.
using Lines = std::set<int>;

bool is_on = false;
bool in_undo = false;
Lines in_text_ran;
Lines in_undo_ran;

void note_line(lua_State* /*lua*/, lua_Debug* event) {
  (in_undo ? in_undo_ran : in_text_ran).insert(event->currentline);
}

/// Whether something can run there, as far as can be told without a compiler: not where nothing but
/// a block or a list ends.
bool is_code(std::string_view line) {
  constexpr std::array<std::string_view, 5> begins{"local function ", "else", "until ", "function ",
                                                   "while true do"};
  if (std::ranges::any_of(begins, [&](std::string_view begin) {
        return line.starts_with(begin) && !line.starts_with("elseif");
      })) {
    return false;
  }
  return line.find_first_not_of(")}], ") != std::string_view::npos && line != "end" &&
         line != "end)" && !line.ends_with(" =");
}

struct Count {
  std::size_t code = 0;
  std::size_t ran = 0;
};

/// Line by line, with the function or the script that each is in.
void print_lines(std::string_view text, const Lines& ran, std::string where, Count& count) {
  int number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    for (const std::string_view begin : {"local function ", "if script == '"}) {
      if (line.starts_with(begin))
        where = line.substr(begin.size(), line.find_first_of("('", begin.size()) - begin.size());
    }
    if (!is_code(line)) continue;
    ++count.code;
    if (ran.contains(number)) {
      ++count.ran;
    } else {
      fmt::print("never: {}: {}\n", where, line);
    }
  }
}

}  // namespace

extern "C" {
lua_State* __real_luaL_newstate();

lua_State* __wrap_luaL_newstate() {
  lua_State* lua = __real_luaL_newstate();
  if (is_on && lua != nullptr) lua_sethook(lua, note_line, LUA_MASKLINE, 0);
  return lua;
}
}

namespace redlock::sim::coverage {

void switch_on() {
  is_on = true;
}

void runs(bool undo) {
  in_undo = undo;
}

bool print() {
  Count count;
  print_lines(scripts::text, in_text_ran, "", count);
  print_lines(scripts::undo, in_undo_ran, "undo", count);
  fmt::print("{} of {} lines of the scripts ran\n", count.ran, count.code);
  return count.ran > 0;
}

}  // namespace redlock::sim::coverage
