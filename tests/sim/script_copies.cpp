#include "coverage.hpp"

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

namespace {

bool is_on = false;
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
  if (!is_on) return __real_luaL_loadbuffer(lua, script, size, name);
  lua_register(lua, "seen", note);
  const std::string_view copy = copy_of({script, size});
  return __real_luaL_loadbuffer(lua, copy.data(), copy.size(), name);
}
}

namespace redlock::sim::coverage {

void switch_on() {
  is_on = true;
}

bool write(const std::string& path) {
  std::ofstream file(path);
  for (const auto& [outcomes, value] : {std::pair(&false_seen, 0), std::pair(&true_seen, 1)}) {
    for (std::size_t number = 0; number < outcomes->size(); ++number) {
      if ((*outcomes)[number]) file << fmt::format("{} {}\n", number, value);
    }
  }
  return static_cast<bool>(file.flush());
}

}  // namespace redlock::sim::coverage
