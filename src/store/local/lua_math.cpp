#include "store/local/lua_math.hpp"

#include <dlfcn.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>

namespace redlock::local {
namespace {

/// From here on a double has no fraction.
constexpr lua_Number whole = 4503599627370496.0;  // 2^52

lua_Number round_down(lua_Number number) {
  if (!(number > -whole && number < whole)) return number;  // NaN as well
  const auto cut = static_cast<lua_Number>(static_cast<std::int64_t>(number));
  return std::copysign(cut > number ? cut - 1 : cut, number);  // -0 stays so
}

int math_abs(lua_State* lua) {
  lua_pushnumber(lua, std::fabs(luaL_checknumber(lua, 1)));
  return 1;
}

int math_ceil(lua_State* lua) {
  lua_pushnumber(lua, -round_down(-luaL_checknumber(lua, 1)));
  return 1;
}

int math_floor(lua_State* lua) {
  lua_pushnumber(lua, round_down(luaL_checknumber(lua, 1)));
  return 1;
}

template <class Better>
int best_of(lua_State* lua, Better is_better) {
  lua_Number best = luaL_checknumber(lua, 1);
  for (int i = 2; i <= lua_gettop(lua); ++i) {
    const lua_Number number = luaL_checknumber(lua, i);
    if (is_better(number, best)) best = number;
  }
  lua_pushnumber(lua, best);
  return 1;
}

int math_max(lua_State* lua) {
  return best_of(lua, [](lua_Number a, lua_Number b) { return a > b; });
}

int math_min(lua_State* lua) {
  return best_of(lua, [](lua_Number a, lua_Number b) { return a < b; });
}

template <class Function>
Function from_libm(const char* name) {
  void* library = ::dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
  void* symbol = library != nullptr ? ::dlsym(library, name) : nullptr;
  if (symbol == nullptr) throw std::runtime_error("libm.so.6 cannot be loaded");
  return reinterpret_cast<Function>(symbol);
}

}  // namespace

void push_math(lua_State* lua) {
  lua_newtable(lua);
  for (const auto& [name, function] : std::array<std::pair<const char*, lua_CFunction>, 5>{
           {{"abs", math_abs}, {"ceil", math_ceil}, {"floor", math_floor}, {"max", math_max}, {"min", math_min}}}) {
    lua_pushcfunction(lua, function);
    lua_setfield(lua, -2, name);
  }
  lua_pushnumber(lua, std::numeric_limits<lua_Number>::infinity());
  lua_setfield(lua, -2, "huge");
}

}  // namespace redlock::local

// In the place of libm's for all that is linked into the program: the linker's --wrap (cmake/Dependencies.cmake).
extern "C" double __wrap_pow(double base, double exponent) {
  static const auto real = redlock::local::from_libm<double (*)(double, double)>("pow");
  return real(base, exponent);
}

extern "C" double __wrap_floor(double number) {
  static const auto real = redlock::local::from_libm<double (*)(double)>("floor");
  return real(number);
}
