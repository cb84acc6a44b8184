#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/local/commands.hpp"

struct lua_State;

namespace redlock::local {

/// scripts::text as bytecode, which LuaHost loads faster.
extern const std::string_view compiled_scripts;

/// Runs the lock scripts like EVAL in Redis, but on a Keyspace.
///
/// A script can use KEYS and ARGV, Lua's base, string, table and math libraries, and redis.call,
/// pcall, sha1hex and error_reply. Values are converted as in Redis: numbers lose their fraction,
/// nil and booleans become nil, a table ends at its first nil. Scripts must not set globals, which
/// Redis would refuse.
///
/// Scripts are trusted, as they are compiled into the program. The content of a lock file is not,
/// but it cannot keep a script from ending: it has at most max_body bytes (lock_file_format.hpp),
/// and each iteration of a loop passes or drops one of its entries. A value that makes a script
/// fail results in an error reply.
///
/// Caches compiled scripts. Starts Lua when it first runs one. Single-threaded.
class LuaHost {
 public:
  LuaHost() = default;
  LuaHost(const LuaHost&) = delete;
  LuaHost& operator=(const LuaHost&) = delete;

  /// The reply of the script, which is text or bytecode. An error that the script does not catch is
  /// an error reply. `script` must not change or move while the host lives, as compiled scripts are
  /// found by address. Comparing texts took a twentieth of the simulation's time.
  Reply run(Keyspace& keyspace, std::string_view script, Arguments keys, Arguments arguments);

 private:
  struct Close {
    void operator()(lua_State* lua) const;
  };
  struct Job;
  struct Compiled {
    std::string_view script;
    int reference;  ///< to the function in Lua's registry
  };

  static int set_up(lua_State* lua);
  static int run_job(lua_State* lua);
  static LuaHost& of(lua_State* lua);

  template <class Work>
  int guard(lua_State* lua, Work work);
  /// Reads the words of the command on the stack; false if one is neither a string nor a number.
  bool read_words(lua_State* lua);
  int call(lua_State* lua, bool raise);
  int sha1hex(lua_State* lua);
  void push_compiled(lua_State* lua, std::string_view script);

  std::unique_ptr<lua_State, Close> lua_;
  std::vector<Compiled> compiled_;
  // The state of the current run:
  Keyspace* keyspace_ = nullptr;
  std::vector<std::string_view> words_;  ///< of the last command, while it is on Lua's stack
  std::vector<std::string> numbers_;     ///< the text of those words that are numbers in Lua
  Reply reply_;                          ///< to the last command
  std::exception_ptr exception_;
};

}  // namespace redlock::local
