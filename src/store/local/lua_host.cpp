#include "store/local/lua_host.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

#include "store/local/command_parts.hpp"
#include "store/local/lua_math.hpp"
#include "store/local/lua_values.hpp"
#include "support/digest.hpp"

namespace redlock::local {
namespace {

/// A script of ours takes some hundred instructions and, with thousands waiting, some megabytes. Beyond this it is broken.
constexpr int most_instructions = 10'000'000;
constexpr std::size_t most_memory = 64UL * 1024 * 1024;
constexpr int hook_interval = 10'000;

/// What is taken from Lua's own libraries.
constexpr std::array base_functions{"assert", "error", "ipairs", "next", "pairs", "select", "type", "tonumber", "tostring", "unpack"};
constexpr std::array string_functions{"byte",  "char",  "find", "format",  "gmatch", "gsub", "len",
                                      "lower", "match", "rep",  "reverse", "sub",    "upper"};
constexpr std::array table_functions{"concat", "insert", "maxn", "remove", "sort"};

/// Lua collects its garbage when it has so many per cent of what was left the last time; a run leaves little.
constexpr int garbage_pause = 400;

}  // namespace

/// A Lua with what scripts may use, and the bounds of the run under way.
class LuaHost::State {
 public:
  State() {
    lua_ = lua_newstate(allocate, this);
    if (lua_ == nullptr) throw std::bad_alloc();
    lua_pushcfunction(lua_, set_up);
    if (lua_pcall(lua_, 0, 0, 0) != 0) {
      lua_close(lua_);
      throw std::bad_alloc();  // nothing else can go wrong there
    }
  }
  ~State() { lua_close(lua_); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Out of memory, perhaps, and not to be used again.
  [[nodiscard]] bool is_spoiled() const noexcept { return spoiled_; }

  Reply run(Keyspace& keyspace, std::string_view script, Arguments keys, Arguments arguments) {
    job_ = Job{&keyspace, script, keys, arguments, nil_reply()};
    instructions_left_ = most_instructions;
    lua_sethook(lua_, count_instructions, LUA_MASKCOUNT, hook_interval);
    const int failed = lua_cpcall(lua_, run_job, nullptr);
    lua_sethook(lua_, nullptr, 0, 0);
    if (failed != 0) job_.reply = failure_reply(failed);
    lua_settop(lua_, 0);
    return std::move(job_.reply);
  }

 private:
  struct Job {
    Keyspace* keyspace = nullptr;
    std::string_view script;
    Arguments keys;
    Arguments arguments;
    Reply reply;
  };

  /// Few and of different lengths, so that looking for one compares its text once. As a key in a table of Lua's it would be copied first.
  struct Compiled {
    std::string script;
    int reference;  ///< of the function, in the registry
  };

  static State& of(lua_State* lua) {
    void* self = nullptr;
    lua_getallocf(lua, &self);
    return *static_cast<State*>(self);
  }

  static void* allocate(void* self, void* block, std::size_t before, std::size_t size) {
    State& state = *static_cast<State*>(self);
    if (size > before && state.memory_ + (size - before) > most_memory) return nullptr;
    void* moved = size > 0 ? ::operator new(size, std::nothrow) : nullptr;
    if (size > before && moved == nullptr) return nullptr;
    state.memory_ += size - before;
    if (size > 0 && moved == nullptr) return block;  // Lua counts on it that less is never refused
    if (before > 0 && size > 0) std::memcpy(moved, block, std::min(before, size));
    ::operator delete(block);
    return moved;
  }

  static void count_instructions(lua_State* lua, lua_Debug*) {
    State& state = of(lua);
    state.instructions_left_ -= hook_interval;
    if (state.instructions_left_ <= 0) luaL_error(lua, "script takes too long");
  }

  // --- What scripts see ---

  static int set_up(lua_State* lua) {
    for (const lua_CFunction open : {luaopen_base, luaopen_string, luaopen_table}) {
      lua_pushcfunction(lua, open);
      lua_call(lua, 0, 0);
    }
    lua_newtable(lua);
    for (const char* name : base_functions) take(lua, LUA_GLOBALSINDEX, name);
    add_library(lua, "string", string_functions);
    add_library(lua, "table", table_functions);
    push_math(lua);
    push_read_only(lua);
    lua_setfield(lua, -2, "math");
    add_redis(lua);
    // `"text":format()` looks into the whole library: it shall be the same as what `string` shows.
    push_text(lua, "");
    lua_getmetatable(lua, -1);
    lua_getfield(lua, -3, "string");
    lua_setfield(lua, -2, "__index");
    lua_pop(lua, 2);
    // The table stays in the registry as what the scripts' globals are looked up in; what is not in it is looked up in vain behind it.
    lua_newtable(lua);
    lua_pushcfunction(lua, refuse_unknown);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, -2);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, LUA_REGISTRYINDEX, "visible");
    lua_pushvalue(lua, -1);
    push_read_only(lua);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, -3, "_G");
    lua_setfield(lua, LUA_REGISTRYINDEX, "globals");
    lua_gc(lua, LUA_GCSETPAUSE, garbage_pause);
    return 0;
  }

  /// Copies a field from the table at `from` into the one on top.
  static void take(lua_State* lua, int from, const char* name) {
    lua_getfield(lua, from, name);
    lua_setfield(lua, -2, name);
  }

  template <std::size_t N>
  static void add_library(lua_State* lua, const char* name, const std::array<const char*, N>& functions) {
    lua_getglobal(lua, name);
    lua_newtable(lua);
    for (const char* function : functions) take(lua, -2, function);
    push_read_only(lua);
    lua_setfield(lua, -3, name);
    lua_pop(lua, 1);
  }

  static void add_redis(lua_State* lua) {
    lua_newtable(lua);
    for (const auto& [name, function] : std::array<std::pair<const char*, lua_CFunction>, 5>{{{"call", redis_call},
                                                                                              {"pcall", redis_pcall},
                                                                                              {"sha1hex", redis_sha1hex},
                                                                                              {"error_reply", redis_error_reply},
                                                                                              {"status_reply", redis_status_reply}}}) {
      lua_pushcfunction(lua, function);
      lua_setfield(lua, -2, name);
    }
    push_read_only(lua);
    lua_setfield(lua, -2, "redis");
  }

  /// Replaces the table on top by one that shows it and can't be written to.
  static void push_read_only(lua_State* lua) {
    lua_newtable(lua);
    lua_newtable(lua);
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, refuse_change);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, -2);
    lua_remove(lua, -2);
  }

  static int refuse_change(lua_State* lua) { return luaL_error(lua, "Attempt to modify a readonly table"); }

  static int refuse_unknown(lua_State* lua) {
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", lua_tostring(lua, 2));
  }

  // --- The redis library ---

  static int redis_call(lua_State* lua) { return call(lua, /*raise=*/true); }
  static int redis_pcall(lua_State* lua) { return call(lua, /*raise=*/false); }

  static int call(lua_State* lua, bool raise) {
    const Reply reply = reply_to_call(lua);
    push_reply(lua, reply);
    if (raise && reply.type == Reply::Type::error) return lua_error(lua);
    return 1;
  }

  static Reply reply_to_call(lua_State* lua) {
    const int count = lua_gettop(lua);
    std::vector<std::string> words;
    words.reserve(static_cast<std::size_t>(count));
    for (int i = 1; i <= count; ++i) {
      if (lua_type(lua, i) == LUA_TNUMBER) {
        words.push_back(write_float(lua_tonumber(lua, i)));
      } else if (lua_type(lua, i) == LUA_TSTRING) {
        words.push_back(text_at(lua, i));
      } else {
        return error_reply("ERR Lua redis lib command arguments must be strings or integers");
      }
    }
    if (words.empty()) return error_reply("ERR Please specify at least one argument for this redis lib call");
    const Command* command = find_command(words[0]);
    if (command == nullptr) return error_reply("ERR Unknown Redis command called from script");
    if (!command->takes(words.size())) return error_reply("ERR Wrong number of args calling Redis command from script");
    return command->run(*of(lua).job_.keyspace, words);
  }

  static int redis_sha1hex(lua_State* lua) {
    if (lua_gettop(lua) != 1) return wrong_arguments(lua, "wrong number of arguments", /*raise=*/true);
    push_text(lua, sha1_hex(lua_isstring(lua, 1) != 0 ? text_at(lua, 1) : std::string()));
    return 1;
  }

  static int redis_error_reply(lua_State* lua) {
    if (!has_one_text(lua)) return wrong_arguments(lua, "wrong number or type of arguments", /*raise=*/false);
    const std::string text = text_at(lua, 1);
    push_error(lua, text.starts_with('-') ? text : "-" + text);
    return 1;
  }

  static int redis_status_reply(lua_State* lua) {
    if (!has_one_text(lua)) return wrong_arguments(lua, "wrong number or type of arguments", /*raise=*/false);
    push_reply(lua, status_reply(text_at(lua, 1)));
    return 1;
  }

  static bool has_one_text(lua_State* lua) { return lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING; }

  static int wrong_arguments(lua_State* lua, std::string_view what, bool raise) {
    push_error(lua, what);
    return raise ? lua_error(lua) : 1;
  }

  // --- A run ---

  static int run_job(lua_State* lua) {
    Job& job = of(lua).job_;
    lua_settop(lua, 0);
    lua_pushcfunction(lua, add_place);
    if (!push_compiled(lua, job.script)) {
      job.reply = error_reply("ERR Error compiling script (new function): " + text_at(lua, -1));
      return 0;
    }
    set_visible_list(lua, "KEYS", job.keys);
    set_visible_list(lua, "ARGV", job.arguments);
    if (const int failed = lua_pcall(lua, 0, 1, 1); failed != 0) {
      job.reply = failure(lua, failed, job.script);
    } else {
      job.reply = to_reply(lua);
    }
    return 0;
  }

  /// The script as a function, or what is wrong with it.
  static bool push_compiled(lua_State* lua, std::string_view script) {
    std::vector<Compiled>& compiled = of(lua).compiled_;
    const auto known = std::find_if(compiled.begin(), compiled.end(), [=](const Compiled& one) { return one.script == script; });
    if (known != compiled.end()) {
      lua_rawgeti(lua, LUA_REGISTRYINDEX, known->reference);
      return true;
    }
    if (luaL_loadbuffer(lua, script.data(), script.size(), "@user_script") != 0) return false;
    lua_getfield(lua, LUA_REGISTRYINDEX, "globals");
    lua_setfenv(lua, -2);
    lua_pushvalue(lua, -1);
    const int reference = luaL_ref(lua, LUA_REGISTRYINDEX);
    compiled.push_back(Compiled{std::string(script), reference});
    return true;
  }

  static void set_visible_list(lua_State* lua, const char* name, Arguments texts) {
    lua_getfield(lua, LUA_REGISTRYINDEX, "visible");
    lua_createtable(lua, static_cast<int>(texts.size()), 0);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      push_text(lua, texts[i]);
      lua_rawseti(lua, -2, static_cast<int>(i + 1));
    }
    lua_setfield(lua, -2, name);
    lua_pop(lua, 1);
  }

  /// Whatever was raised becomes {err, source, line}.
  static int add_place(lua_State* lua) {
    if (!lua_istable(lua, 1)) {
      const char* text = lua_tostring(lua, 1);
      push_error(lua, text != nullptr ? text : lua_typename(lua, lua_type(lua, 1)));
      lua_replace(lua, 1);
    }
    lua_Debug place{};
    int level = 1;
    if (lua_getstack(lua, level, &place) != 0 && lua_getinfo(lua, "S", &place) != 0 && *place.what == 'C') ++level;
    if (lua_getstack(lua, level, &place) != 0 && lua_getinfo(lua, "Sl", &place) != 0) {
      lua_pushstring(lua, place.source);
      lua_setfield(lua, 1, "source");
      lua_pushinteger(lua, place.currentline);
      lua_setfield(lua, 1, "line");
    }
    lua_settop(lua, 1);
    return 1;
  }

  static Reply failure(lua_State* lua, int kind, std::string_view script) {
    if (kind != LUA_ERRRUN || !lua_istable(lua, -1)) return of(lua).failure_reply(kind);
    const Reply error = to_reply(lua);
    std::string text = error.type == Reply::Type::error ? error.text : "ERR unknown error";
    lua_getfield(lua, -1, "source");
    lua_getfield(lua, -2, "line");
    if (lua_isstring(lua, -1) != 0 && lua_isstring(lua, -2) != 0) {
      text += " script: " + sha1_hex(script) + ", on " + text_at(lua, -2) + ":" + text_at(lua, -1) + ".";
    }
    return error_reply(text);
  }

  /// When not even the error could be described.
  Reply failure_reply(int kind) {
    spoiled_ = true;
    return error_reply(kind == LUA_ERRMEM ? "ERR script needs too much memory" : "ERR script failed");
  }

  std::size_t memory_ = 0;
  bool spoiled_ = false;
  int instructions_left_ = 0;
  Job job_;
  std::vector<Compiled> compiled_;
  lua_State* lua_ = nullptr;
};

LuaHost::LuaHost() = default;
LuaHost::~LuaHost() = default;

Reply LuaHost::run(Keyspace& keyspace, std::string_view script, Arguments keys, Arguments arguments) {
  if (!state_) state_ = std::make_unique<State>();
  Reply reply = state_->run(keyspace, script, keys, arguments);
  if (state_->is_spoiled()) state_.reset();
  return reply;
}

}  // namespace redlock::local
