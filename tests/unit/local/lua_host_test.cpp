// Scripts in the host against the same in a real Redis.
#include "store/local/lua_host.hpp"

#include <random>
#include <regex>
#include <set>

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
    return host_.run(keyspace_, script, views_of(keys), views_of(arguments));
  }

  Keyspace keyspace_;
  LuaHost host_;
};

class LuaHostDifferentialTest : public ::testing::Test {
 protected:
  void agree(std::string_view text, const Words& keys = {}, const Words& arguments = {}) {
    const std::string_view script = *texts_.emplace(text).first;
    EXPECT_TRUE(twin_.agree(eval(script, keys, arguments), [&](Keyspace& keyspace) {
      return host_.run(keyspace, script, views_of(keys), views_of(arguments));
    })) << script;
  }

  std::set<std::string> texts_;  ///< for as long as the host lives
  LuaHost host_;
  Twin twin_{{"text", "hash", "zset"}};
};

TEST_F(LuaHostDifferentialTest, ValuesAreConvertedAsInRedis) {
  for (const std::string_view script : {
           "return 1",
           "return 1.9",
           "return -1.9",
           "return 1e300",
           "return 0/0",
           "return false",
           "return nil",
           "return",
           "",
           "return 'a\\0b'",
           "return {}",
           "return {1, 2.5, 'x', false, 'y'}",
           "return {1, nil, 3}",
           "return {{1, {2}}, {}}",
           "return {err = 'NO way'}",
           "return {a = 1}",
           "return redis.error_reply('FENCE broken')",
           "return redis.sha1hex('')",
           "return redis.sha1hex('abc')",
           "return redis.sha1hex(5)",
           "return #KEYS",
           "return KEYS[1]",
           "return {tostring(1e15), tostring(2^53), tostring(0.1)}",
           "return {tostring(math.floor(2.5)), tostring(math.floor(-2.5)), "
           "tostring(math.floor(2^52 + 1)), tostring(math.floor(-0.0))}",
           "return {tostring(math.max(1, 3, 2)), tostring(math.min(3, 1, 2)), "
           "tostring(-math.huge), tostring(math.floor(1/0))}",
           "return string.format('%.0f', 2^52 + 0.5)",
           "return {type(redis.call('GET', 'text'))}",
       }) {
    agree(script);
  }
}

/// The program of a release could not compute it (no_libm.cpp).
TEST(LuaScripts, NoneRaisesToAPower) {
  const std::regex comment_or_string("--[^\n]*|'[^'\n]*'|\"[^\"\n]*\"");
  for (const std::string_view script : {scripts::text, scripts::undo}) {
    const std::string code = std::regex_replace(std::string(script), comment_or_string, "");
    EXPECT_NE(code, "");
    EXPECT_EQ(code.find('^'), std::string::npos);
  }
}

TEST_F(LuaHostDifferentialTest, RepliesReachTheScriptAsInRedis) {
  agree("return redis.call('GET', KEYS[1])", {"text"});
  agree("redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])", {"text"}, {"x", "100000"});
  agree("redis.call('HSET', KEYS[1], 'a', 1, 'b', 2.5, 'c', 1e20, 'd', -0.1)", {"hash"});
  agree("redis.call('ZADD', KEYS[1], 1.5, 'a')", {"zset"});
  for (const std::string_view call :
       {"'GET', 'text'", "'GET', 'none'", "'GET', 'hash'", "'HMGET', 'hash', 'a', 'x', 'b'",
        "'PTTL', 'none'", "'ZSCORE', 'zset', 'a'", "'ZRANGE', 'zset', 0, -1", "'NOSUCH', 1",
        "'GET'", "'GET', 1, 2", "'SET', 'text', 'y', 'BAD'"}) {
    const std::string arguments(call);
    agree("return redis.call(" + arguments + ")");
    agree("local r = redis.pcall(" + arguments +
          ") return {type(r), type(r) == 'table' and not r.err and #r or 0}");
  }
  for (const std::string_view words : {"", "''", "{}", "'GET', true", "'GET', nil"})
    agree("return redis.call(" + std::string(words) + ")");
  agree("return redis.call('TYPE', 'zset').ok");
  agree("return redis.call('SET', 'text', 'z').ok");
  agree("redis.call('SET', KEYS[1], -0.0)", {"text"});
}

TEST_F(LuaHostDifferentialTest, ErrorsEndTheScriptAsInRedis) {
  for (const std::string_view script : {
           "error('broken')",
           "error({err = 'MY own'})",
           "\nlocal x = nil + 1",
           "return nosuch.field",
           "local function f() redis.call('GET') end\nf()",
           "return redis.pcall('GET', 'text', 'x')",
           "return redis.pcall('GET', nil)",
           "return redis.pcall('GET', true)",
           "local reply = redis.pcall('GET', {}) return type(reply) .. type(reply.err)",
           "return tonumber('inf') < nil",
       }) {
    agree(script);
  }
}

/// Argument lists for the real scripts: mostly plausible, always of the right length, since that is
/// what the program sends.
class RandomCalls {
 public:
  explicit RandomCalls(std::uint64_t seed) : engine_(seed) {}

  struct Notification {
    const Script* script;
    Words arguments;
  };

  Notification next() {
    switch (draw(11)) {
      case 0:
      case 1:
      case 2:
        return with_name(scripts::acquire, {token(), ttl(), flag(), record(), mode(), slots(),
                                            slot(), waiter(), ticket(), flag(), life(), flag(), "0",
                                            pick({"0", "0", "1"}), pick({"1", "1", "2"})});
      case 3:
        return with_name(scripts::extend, {token(), ttl(), slot(), fence()});
      case 4:
        return with_name(scripts::heal,
                         {token(), ttl(), fence(), ttl(), flag(), record(), mode(), slot()});
      case 5:
        return with_name(scripts::raise_fence, {token(), fence(), ttl()});
      case 6:
        return with_name(scripts::release, {token(), flag(), draw(3) == 0 ? ttl() : "0", waiter(),
                                            ticket(), flag(), life(), mode(), record()});
      case 7:
        return with_name(scripts::leave, {waiter()});
      case 8:
        return with_name(scripts::break_lock, {draw(2) == 0 ? fence() : ""});
      case 9:
        return with_name(scripts::ask, {draw(2) == 0 ? sha1_hex(token()) : "", slot(),
                                        draw(2) == 0 ? R"({"reason":"why"})" : ""});
      default:
        return with_name(scripts::inspect, {draw(2) == 0 ? sha1_hex(token()) : ""});
    }
  }

  /// What another client may do to the keys.
  Words meddle(const Words& keys) {
    const std::string key = keys[draw(keys.size())];
    switch (draw(6)) {
      case 0:
        return {"SET", key, pick({"foreign", "", "12", "-1", "1e3", "4503599627370496", token()})};
      case 1:
        return {"SET", key, token(), "PX", ttl()};
      case 2:
        return {"HSET", key, pick({"lease", "fence", "since", "supervised", "record"}),
                pick({"x", "", "17"})};
      case 3:
        return {"ZADD", key,
                pick({"12", "1700000000000", "1900000000000",
                      std::to_string(wall_clock_now().count())}),
                pick({sha1_hex(token()), "one"})};
      case 4:
        return {"PERSIST", key};
      default:
        return {"DEL", key};
    }
  }

  bool one_in(std::size_t n) { return draw(n) == 0; }

 private:
  static Notification with_name(const Script& script, Words arguments) {
    arguments.emplace_back(script.name);
    return {&script, std::move(arguments)};
  }

  std::string mode() { return pick({"x", "s"}); }
  std::string slots() { return pick({"0", "0", "1", "3"}); }
  std::string slot() { return pick({"", "", "0", "2", "0,2"}); }
  std::string waiter() { return pick({"", "one", "two", "three"}); }
  std::string ticket() { return pick({"1", "17", "1700000000000"}); }
  std::string life() { return pick({"1", "2000", "35000"}); }
  std::string token() {
    return pick({std::string(32, 'a'), std::string(32, 'b'), std::string(32, 'c')});
  }
  std::string ttl() { return pick({"1", "2", "5", "30000", "60000", "31536000000"}); }
  std::string fence() {
    return pick(
        {"1", "17", "1700000000000", "1900000000000", "4503599627370495", "4503599627370496"});
  }
  std::string flag() { return pick({"0", "1"}); }
  std::string record() { return pick({"", "{}", R"({"host":"web1","note":"\u0000"})"}); }

  std::size_t draw(std::size_t choices) {
    return std::uniform_int_distribution<std::size_t>(0, choices - 1)(engine_);
  }
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
      const RandomCalls::Notification call = calls.next();
      ASSERT_TRUE(twin.agree(eval(scripts::text, keys, call.arguments),
                             [&](Keyspace& keyspace) {
                               return host.run(keyspace, compiled_scripts, views_of(keys),
                                               views_of(call.arguments));
                             }))
          << call.script->name << ", seed " << seed << ", step " << step;
    }
  }
}

TEST_F(LuaHostTest, AnErrorSaysWhere) {
  EXPECT_EQ(run("\n\nerror('broken')").text, "ERR user_script:3: broken");
  EXPECT_EQ(run("redis.call('GET')").text, "ERR wrong number of arguments for 'GET' command");
  EXPECT_TRUE(run("return (").text.starts_with("ERR user_script:1: "));
  EXPECT_EQ(run("return 1").integer, 1) << "and the next script runs";
}

TEST_F(LuaHostTest, AnExceptionGoesOnBehindTheScriptThatCausedIt) {
  Keyspace failing([](std::string_view, std::string_view) -> std::int64_t {
    throw std::runtime_error("no memory, for example");
  });
  // Lua counts the calls of C that it is in, up to 200: each that an exception left would count.
  for (int i = 0; i < 250; ++i) {
    EXPECT_THROW(host_.run(failing, "redis.pcall('PUBLISH', 'a', 'b') return 1", {}, {}),
                 std::runtime_error);
  }
  EXPECT_EQ(show(run("return 1")), ":1");
}

TEST_F(LuaHostTest, KeysAndArgumentsAreThoseOfTheCall) {
  run("KEYS[1] = 'mine'", {"a", "b"}, {"c"});
  EXPECT_EQ(run("return #KEYS + #ARGV").integer, 0);
}

TEST_F(LuaHostTest, AQueueOfThousandsThatAreGoneIsPassedInOneRun) {
  const Resource resource = Resource::from("deploy").value();
  const HelperKeys helper(resource);
  Words keys = helper.all();
  keys.insert(keys.begin(), resource.key());
  keyspace_.set_time(1'700'000'000'000'000us);
  SortedSet queue;
  Hash waiters;
  for (int i = 0; i < 2000; ++i) {
    const std::string id = std::to_string(i);
    queue.put(id, i);
    waiters.emplace_back(id, "x 0 1 0 1 ");
  }
  keyspace_.put(helper.queue(), queue);
  keyspace_.put(helper.waiters(), waiters);

  const Reply reply =
      run(compiled_scripts, keys,
          {std::string(32, 'a'), "30000", "1", "{}", "x", "0", "-1", "", "0", "0", "0", "acquire"});
  ASSERT_EQ(reply.type, Reply::Type::array) << reply.text;
  EXPECT_EQ(reply.elements[0].text, "granted");
  EXPECT_EQ(execute(keyspace_, views_of(Words{"ZCARD", helper.queue()})).integer, 0);
}

}  // namespace
}  // namespace redlock::local
