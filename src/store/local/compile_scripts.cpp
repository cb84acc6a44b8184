// A build tool, not part of the program. It writes a C++ source with the Lua bytecode of the lock
// scripts. Parsing them as text would take seven times as many instructions, at every start with
// local:.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <lua.hpp>

#include "store/script.hpp"

namespace {

using Instruction = std::uint32_t;

int append(lua_State*, const void* bytes, std::size_t size, void* text) {
  static_cast<std::string*>(text)->append(static_cast<const char*>(bytes), size);
  return 0;
}

/// Copies bytecode without its debug information (lines, names of variables), which is half of it.
/// `luac -s` does the same, but would be one more build dependency. For the format, see ldump.c of
/// Lua 5.1.
class Stripper {
 public:
  explicit Stripper(std::string_view bytecode) : rest_(bytecode) {}

  std::string strip() {
    keep(header_size);
    strip_function();
    return std::move(kept_);
  }

 private:
  static constexpr std::size_t header_size = 12;

  void strip_function() {
    drop_text();  // the name of the source
    keep_empty_text();
    keep(2 * sizeof(int) + 4);
    keep(static_cast<std::size_t>(keep_count()) * sizeof(Instruction));
    for (int constants = keep_count(); constants > 0; --constants) strip_constant();
    for (int functions = keep_count(); functions > 0; --functions) strip_function();
    drop(static_cast<std::size_t>(take<int>()) * sizeof(int));  // lines
    for (int variables = take<int>(); variables > 0; --variables) {
      drop_text();
      drop(2 * sizeof(int));
    }
    for (int upvalues = take<int>(); upvalues > 0; --upvalues) drop_text();
    kept_.append(3 * sizeof(int), '\0');
  }

  void strip_constant() {
    const char type = rest_.at(0);
    keep(1);
    if (type == LUA_TBOOLEAN) keep(1);
    if (type == LUA_TNUMBER) keep(sizeof(lua_Number));
    if (type == LUA_TSTRING) keep(sizeof(std::size_t) + peek<std::size_t>());
  }

  template <class Number>
  [[nodiscard]] Number peek() const {
    Number number{};
    std::memcpy(&number, rest_.substr(0, sizeof number).data(), sizeof number);
    return number;
  }

  template <class Number>
  Number take() {
    const auto number = peek<Number>();
    drop(sizeof number);
    return number;
  }

  int keep_count() {
    const int count = peek<int>();
    keep(sizeof count);
    return count;
  }

  void drop_text() { drop(take<std::size_t>()); }
  void keep_empty_text() { kept_.append(sizeof(std::size_t), '\0'); }
  void drop(std::size_t size) { rest_.remove_prefix(size); }
  void keep(std::size_t size) {
    kept_ += rest_.substr(0, size);
    drop(size);
  }

  std::string_view rest_;
  std::string kept_;
};

}  // namespace

int main(int argc, char** argv) {
  std::ofstream out(argc == 2 ? argv[1] : "");
  const std::string_view text = redlock::scripts::text;
  lua_State* lua = luaL_newstate();
  std::string dumped;
  if (luaL_loadbuffer(lua, text.data(), text.size(), "@user_script") != 0 ||
      lua_dump(lua, append, &dumped) != 0) {
    std::cerr << lua_tostring(lua, -1) << "\n";
    return 1;
  }
  const std::string stripped = Stripper(dumped).strip();
  if (luaL_loadbuffer(lua, stripped.data(), stripped.size(), "@user_script") != 0) {
    std::cerr << lua_tostring(lua, -1) << "\n";
    return 1;
  }
  lua_close(lua);

  out << "// Made from src/store/scripts by src/store/local/compile_scripts.cpp.\n"
         "#include \"store/local/lua_host.hpp\"\n\n"
         "namespace redlock::local {\nnamespace {\nconstexpr unsigned char bytes[] = {\n";
  for (std::size_t i = 0; i < stripped.size(); ++i)
    out << +static_cast<unsigned char>(stripped[i]) << (i % 32 == 31 ? ",\n" : ",");
  out << "};\n}  // namespace\n\nconst std::string_view compiled_scripts{\n"
         "    reinterpret_cast<const char*>(bytes), sizeof(bytes)};\n\n}  // namespace "
         "redlock::local\n";
  return out.flush() ? 0 : 1;
}
