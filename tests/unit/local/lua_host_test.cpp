// Scripts in the host against the same in a real Redis.
#include "store/local/lua_host.hpp"

#include <random>

#include "core/helper_keys.hpp"
#include "store/script.hpp"
#include "support/digest.hpp"
#include "twin.hpp"

namespace redlock::local {
namespace {

using namespace std::chrono_literals;

Words eval(std::string_view script, const Words& keys = {}, const Words& arguments = {}) {
  Words words{"EVAL", std::string(script), std::to_string(keys.size())};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

class LuaHostTest : public ::testing::Test {
 protected:
  Reply run(std::string_view script, const Words& keys = {}, const Words& arguments = {}) {
    return host_.run(keyspace_, script, keys, arguments);
  }

  Keyspace keyspace_;
  LuaHost host_;
};

class LuaHostDifferentialTest : public ::testing::Test {
 protected:
  void agree(std::string_view script, const Words& keys = {}, const Words& arguments = {}) {
    EXPECT_TRUE(twin_.agree(eval(script, keys, arguments), [&](Keyspace& keyspace) {
      return host_.run(keyspace, script, keys, arguments);
    })) << script;
  }

  LuaHost host_;
  Twin twin_{{"text", "hash", "zset"}};
};

TEST_F(LuaHostDifferentialTest, ValuesAreConvertedAsInRedis) {
  for (const std::string_view script : {
           "return 1",
           "return 1.9",
           "return -1.9",
           "return 1e300",
           "return -1e300",
           "return 0/0",
           "return true",
           "return false",
           "return nil",
           "return",
           "",
           "return 'a\\0b'",
           "return {}",
           "return {1, 2.5, 'x', true, false, 'y'}",
           "return {1, nil, 3}",
           "return {{1, {2}}, {}}",
           "return {ok = 'fine'}",
           "return {ok = 'a\\r\\nb'}",
           "return {err = 'NO way'}",
           "return {err = 'NOWAY'}",
           "return {err = 1, ok = 'x'}",
           "return {a = 1}",
           "return print ~= nil",
           "return function() end",
           "return redis.status_reply('S')",
           "return redis.error_reply('FENCE broken')",
           "return redis.error_reply('-FENCE broken')",
           "return redis.error_reply('FENCE')",
           "return redis.error_reply('-FENCE')",
           "return redis.error_reply('')",
           "return redis.error_reply(1)",
           "return redis.error_reply()",
           "return redis.status_reply()",
           "return redis.sha1hex('')",
           "return redis.sha1hex('abc')",
           "return redis.sha1hex(5)",
           "return redis.sha1hex(nil)",
           "return #KEYS",
           "return KEYS[1]",
           "return {tostring(1e15), tostring(2^53), tostring(0.1)}",
           "return string.format('%.0f', 2^52 + 0.5)",
           "return tonumber('0x10')",
           "return {type(redis.call('GET', 'text'))}",
       }) {
    agree(script);
  }
}

TEST_F(LuaHostDifferentialTest, NumbersAreComputedAsInRedis) {
  for (const std::string_view number :
       {"0", "-0.0", "1", "1.5", "-1.5", "-1", "0.1", "1e15+0.5", "-1e15-0.5", "2^52", "2^53+1", "-2^60", "1e300", "0/0", "1/0", "-1/0"}) {
    for (const std::string_view function : {"math.floor", "math.ceil", "math.abs", "math.max", "math.min"}) {
      agree("return tostring(" + std::string(function) + "(" + std::string(number) + "))");
    }
    agree("return tostring(math.max(3, " + std::string(number) + ", 0)) .. tostring(math.min(3, " + std::string(number) + ", 0))");
    agree("return tostring((" + std::string(number) + ") % 7) .. tostring((" + std::string(number) + ") ^ 2)");
  }
  agree("return tostring(math.huge)");
  agree("return math.floor()");
  agree("return math.floor('x')");
  agree("return math.floor('2.5')");
}

TEST_F(LuaHostDifferentialTest, RepliesReachTheScriptAsInRedis) {
  agree("return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])", {"text"}, {"x", "100000"});
  agree("redis.call('HSET', KEYS[1], 'a', 1, 'b', 2.5, 'c', 1e20, 'd', -0.1)", {"hash"});
  agree("redis.call('ZADD', KEYS[1], 1.5, 'a', '2', 'b')", {"zset"});
  for (const std::string_view call :
       {"'GET', 'text'", "'GET', 'none'", "'GET', 'hash'", "'get', 'text'", "'HMGET', 'hash', 'a', 'x', 'b'", "'HGETALL', 'hash'",
        "'TYPE', 'zset'", "'PTTL', 'none'", "'EXISTS', 'text', 'hash'", "'ZSCORE', 'zset', 'a'", "'ZRANGE', 'zset', 0, -1", "'NOSUCH', 1",
        "'GET'", "'GET', 1, 2", "", "{}", "'GET', true", "'GET', nil", "'SET', 'text', 'y', 'BAD'"}) {
    const std::string arguments(call);
    agree("return redis.call(" + arguments + ")");
    agree("return redis.pcall(" + arguments + ")");
    agree("local r = redis.pcall(" + arguments + ") return {type(r), type(r) == 'table' and (r.err or r.ok or #r) or r}");
  }
}

TEST_F(LuaHostDifferentialTest, ErrorsReadAsInRedis) {
  for (const std::string_view script : {
           "error('broken')",
           "error({err = 'MY own'})",
           "\n\nerror('broken')",
           "return nosuch",
           "\nlocal x = nil + 1",
           "return nosuch.field",
           "x = 1",
           "string = nil",
           "string.format = nil",
           "redis.call = nil",
           "error()",
           "error(5)",
           "local function f() redis.call('GET') end\nf()",
           "assert(false, 'no')",
           "assert(false)",
           "return ('x'):rep(3):upper()",
       }) {
    agree(script);
  }
}

/// Argument lists for the real scripts: mostly plausible, always of the right length, since that is what the program sends.
class RandomCalls {
 public:
  explicit RandomCalls(std::uint64_t seed) : engine_(seed) {}

  struct Call {
    const Script* script;
    Words arguments;
  };

  Call next() {
    switch (draw(10)) {
      case 0:
      case 1:
      case 2:
        return with_name(scripts::acquire,
                         {token(), ttl(), flag(), record(), mode(), seats(), seat(), waiter(), ticket(), flag(), life()});
      case 3:
        return with_name(scripts::extend, {token(), ttl(), seat(), fence()});
      case 4:
        return with_name(scripts::heal, {token(), ttl(), fence(), ttl(), flag(), record(), mode(), seat()});
      case 5:
        return with_name(scripts::raise_fence, {token(), fence(), ttl()});
      case 6:
        return with_name(scripts::release,
                         {token(), flag(), draw(3) == 0 ? ttl() : "0", waiter(), ticket(), flag(), life(), mode(), record()});
      case 7:
        return with_name(scripts::leave, {waiter()});
      case 8:
        return with_name(scripts::break_lock, {draw(2) == 0 ? fence() : ""});
      default:
        return with_name(scripts::inspect, {draw(2) == 0 ? sha1_hex(token()) : ""});
    }
  }

  /// What somebody else may do to the keys.
  Words meddle(const Words& keys) {
    const std::string key = keys[draw(keys.size())];
    switch (draw(6)) {
      case 0:
        return {"SET", key, pick({"foreign", "", "12", "-1", "1e3", "4503599627370496", token()})};
      case 1:
        return {"SET", key, token(), "PX", ttl()};
      case 2:
        return {"HSET", key, pick({"lease", "fence", "since", "supervised", "record"}), pick({"x", "", "17"})};
      case 3:
        return {"ZADD", key, pick({"12", "1700000000000", "1900000000000", std::to_string(wall_clock_now().count())}), pick({sha1_hex(token()), "one"})};
      case 4:
        return {"PERSIST", key};
      default:
        return {"DEL", key};
    }
  }

  bool one_in(std::size_t n) { return draw(n) == 0; }

 private:
  static Call with_name(const Script& script, Words arguments) {
    arguments.emplace_back(script.name);
    return {&script, std::move(arguments)};
  }

  std::string mode() { return pick({"x", "s"}); }
  std::string seats() { return pick({"0", "0", "1", "3"}); }
  std::string seat() { return pick({"-1", "-1", "0", "2"}); }
  std::string waiter() { return pick({"", "one", "two", "three"}); }
  std::string ticket() { return pick({"1", "17", "1700000000000"}); }
  std::string life() { return pick({"1", "2000", "35000"}); }
  std::string token() { return pick({std::string(32, 'a'), std::string(32, 'b'), std::string(32, 'c')}); }
  std::string ttl() { return pick({"1", "2", "5", "30000", "60000", "31536000000"}); }
  std::string fence() { return pick({"1", "17", "1700000000000", "1900000000000", "4503599627370495", "4503599627370496"}); }
  std::string flag() { return pick({"0", "1"}); }
  std::string record() { return pick({"", "{}", R"({"host":"web1","note":"\u0000"})"}); }

  std::size_t draw(std::size_t choices) { return std::uniform_int_distribution<std::size_t>(0, choices - 1)(engine_); }
  std::string pick(const Words& from) { return from[draw(from.size())]; }

  std::mt19937_64 engine_;
};

TEST(ScriptsDifferentialTest, TheRealScriptsDoTheSameHereAndInRedis) {
  constexpr int steps = 1000;
  const Resource resource = Resource::from("deploy").value();
  const HelperKeys helper(resource);
  Words keys = helper.all();
  keys.insert(keys.begin(), resource.key());
  Twin twin(keys);
  LuaHost host;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    RandomCalls calls(seed);
    for (int step = 0; step < steps; ++step) {
      if (calls.one_in(5)) {
        ASSERT_TRUE(twin.agree(calls.meddle(keys))) << "seed " << seed << ", step " << step;
      }
      const RandomCalls::Call call = calls.next();
      ASSERT_TRUE(twin.agree(eval(scripts::text, keys, call.arguments),
                             [&](Keyspace& keyspace) { return host.run(keyspace, scripts::text, keys, call.arguments); }))
          << call.script->name << ", seed " << seed << ", step " << step;
    }
  }
}

TEST_F(LuaHostTest, AScriptLeavesNothingToTheNext) {
  run("local x = 1 KEYS[1] = 'mine' rawset = nil");
  EXPECT_EQ(run("return #KEYS").integer, 0);
  for (const std::string_view script : {"leak = 1", "_G.leak = 1", "redis.leak = 1", "math.pi = 3", "local s = '' s.leak = 1"}) {
    EXPECT_EQ(run(script).type, Reply::Type::error) << script;
  }
  EXPECT_EQ(run("return leak").type, Reply::Type::error);
}

TEST_F(LuaHostTest, AScriptReachesNoFilesNoCodeAndNoChance) {
  for (const std::string_view name :
       {"io",     "os",      "debug",   "package",      "require",      "module", "load",   "loadstring", "loadfile",
        "dofile", "getfenv", "setfenv", "getmetatable", "setmetatable", "rawset", "rawget", "newproxy",   "collectgarbage",
        "print",  "pcall",   "xpcall",  "coroutine"}) {
    EXPECT_EQ(run("return " + std::string(name)).type, Reply::Type::error) << name;
  }
  EXPECT_EQ(run("return math.random == nil and string.dump == nil and ('').dump == nil").integer, 1);
}

TEST_F(LuaHostTest, AScriptThatDoesNotEndIsEnded) {
  EXPECT_NE(run("while true do end").text.find("script takes too long"), std::string::npos);
  EXPECT_EQ(run("return 1").integer, 1);
}

TEST_F(LuaHostTest, AScriptThatTakesTooMuchMemoryIsEnded) {
  EXPECT_EQ(run("local s = 'x' while true do s = s .. s end").text, "ERR script needs too much memory");
  EXPECT_EQ(run("local t = {} while true do t[#t + 1] = {} end").type, Reply::Type::error);
  EXPECT_EQ(run("local t = {} t[1] = t return t").type, Reply::Type::array);
  EXPECT_EQ(run("return 1").integer, 1);
}

TEST_F(LuaHostTest, BrokenScriptsAreSaidToBeSo) {
  EXPECT_TRUE(run("return (").text.starts_with("ERR Error compiling script (new function): user_script:1: "));
  EXPECT_TRUE(run("\x1bLua").text.starts_with("ERR ")) << "compiled code is not taken";
}

TEST(DigestTest, DigestsAreThoseOfTheStandards) {  // FIPS 180-4, example "abc"
  EXPECT_EQ(sha1_hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace redlock::local
