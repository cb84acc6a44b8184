#include "script_copies.hpp"

#include <fmt/format.h>

#include <fstream>
#include <lua.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "store/script.hpp"

// The scripts that report their conditions (conditions.py, cmake/EmbedScripts.cmake).
namespace redlock::sim::instrumented {
extern const std::string_view text;
extern const std::string_view undo;
}  // namespace redlock::sim::instrumented

// The scripts as a function that is made once (cmake/EmbedScripts.cmake).
namespace redlock::sim::functions_once {
extern const std::string_view text;
}  // namespace redlock::sim::functions_once

namespace {

bool reports_conditions = false;
bool makes_functions_once = false;
std::vector<bool> false_seen;
std::vector<bool> true_seen;

/// seen(NUMBER, VALUE) in a script: the condition of this number had this value. -> the value
int note(lua_State* lua) {
  lua_settop(lua, 2);
  const auto number = static_cast<std::size_t>(lua_tointeger(lua, 1));
  std::vector<bool>& outcomes = lua_toboolean(lua, 2) != 0 ? true_seen : false_seen;
  if (outcomes.size() <= number) outcomes.resize(number + 1);
  outcomes[number] = true;
  return 1;
}

/// The copy of the chunk that reports its conditions, if it has one; otherwise the chunk.
std::string_view copy_of(std::string_view chunk) {
  using namespace redlock;
  if (chunk == scripts::text) return sim::instrumented::text;
  if (chunk == scripts::undo) return sim::instrumented::undo;
  return chunk;
}

}  // namespace

extern "C" {
int __real_luaL_loadbuffer(lua_State* lua, const char* script, std::size_t size, const char* name);

int __wrap_luaL_loadbuffer(lua_State* lua, const char* script, std::size_t size, const char* name) {
  std::string_view chunk(script, size);
  const bool makes_functions = makes_functions_once && chunk == redlock::scripts::text;
  if (makes_functions) chunk = redlock::sim::functions_once::text;
  if (reports_conditions) {
    lua_register(lua, "seen", note);
    chunk = copy_of(chunk);
  }
  const int status = __real_luaL_loadbuffer(lua, chunk.data(), chunk.size(), name);
  if (status == 0 && makes_functions) lua_call(lua, 0, 1);
  return status;
}
}

namespace redlock::sim::script_copies {

void report_conditions() {
  reports_conditions = true;
}

void make_functions_once() {
  makes_functions_once = true;
}

bool write_outcomes(const std::string& path) {
  std::ofstream file(path);
  for (const auto& [outcomes, value] : {std::pair(&false_seen, 0), std::pair(&true_seen, 1)}) {
    for (std::size_t number = 0; number < outcomes->size(); ++number) {
      if ((*outcomes)[number]) file << fmt::format("{} {}\n", number, value);
    }
  }
  return static_cast<bool>(file.flush());
}

}  // namespace redlock::sim::script_copies
