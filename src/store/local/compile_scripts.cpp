// Not part of the program: run when it is built, it writes a C++ source with the Lua bytecode of
// the lock scripts. Reading them as text would take four times the instructions, at every start
// with local:.
#include <fstream>
#include <iostream>
#include <lua5.1/lua.hpp>

#include "store/script.hpp"

namespace {

/// Writes "1,2,…" for the bytes that lua_dump gives.
int write_bytes(lua_State*, const void* bytes, std::size_t size, void* stream) {
  std::ostream& out = *static_cast<std::ostream*>(stream);
  for (std::size_t i = 0; i < size; ++i) {
    out << +static_cast<const unsigned char*>(bytes)[i] << (i % 32 == 31 ? ",\n" : ",");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::ofstream out(argc == 2 ? argv[1] : "");
  const std::string_view text = redlock::scripts::text;
  lua_State* lua = luaL_newstate();
  if (luaL_loadbuffer(lua, text.data(), text.size(), "@user_script") != 0) {
    std::cerr << lua_tostring(lua, -1) << "\n";
    return 1;
  }

  out << "// Made from src/store/scripts by src/store/local/compile_scripts.cpp.\n"
         "#include \"store/local/lua_host.hpp\"\n\n"
         "namespace redlock::local {\nnamespace {\nconstexpr unsigned char bytes[] = {\n";
  lua_dump(lua, write_bytes, &out);
  out << "};\n}  // namespace\n\nconst std::string_view compiled_scripts{\n"
         "    reinterpret_cast<const char*>(bytes), sizeof(bytes)};\n\n}  // namespace "
         "redlock::local\n";
  lua_close(lua);
  return out.flush() ? 0 : 1;
}
