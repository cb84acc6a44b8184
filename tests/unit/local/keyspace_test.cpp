// The keyspace against a real Redis: the same commands, the same answers, the same state.
#include "store/local/keyspace.hpp"

#include <random>

#include "twin.hpp"

namespace redlock::local {
namespace {

using namespace std::chrono_literals;

Reply run(Keyspace& keyspace, const Words& words) {
  return execute(keyspace, words);
}

// --- Random commands ---

/// Draws commands that mostly make sense, and now and then do not.
class RandomCommands {
 public:
  explicit RandomCommands(std::uint64_t seed) : engine_(seed) {}

  Words next() {
    Words words = sensible();
    if (one_in(20)) words.pop_back();
    if (one_in(30)) words.push_back(pick({"FOO", "1", ""}));
    if (one_in(200)) words = {"LPUSH2", "a\r\nb", std::string(200, 'x')};
    if (one_in(4)) {
      for (char& c : words.empty() ? scratch_ : words[0]) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    if (words.empty()) words = {"GET"};
    return words;
  }

  static Words keys() { return {"a", "b", "c", "d"}; }

 private:
  Words sensible() {
    switch (draw(27)) {
      case 0:
        return {"GET", key()};
      case 1:
      case 2:
      case 3:
        return set();
      case 4:
        return with({"DEL"}, [this] { return key(); });
      case 5:
        return with({"EXISTS"}, [this] { return key(); });
      case 6:
        return {"TYPE", key()};
      case 7:
        return {"PTTL", key()};
      case 8:
        return {"PEXPIRE", key(), span()};
      case 9:
        return {"PEXPIREAT", key(), one_in(2) ? span() : "99999999999999"};
      case 10:
        return {"PERSIST", key()};
      case 11:
      case 12:
        return with({"HSET", key(), member(), member()}, [this] { return member(); });
      case 13:
        return {"HGET", key(), member()};
      case 14:
        return with({"HMGET", key()}, [this] { return member(); });
      case 15:
        return with({"HDEL", key()}, [this] { return member(); });
      case 16:
        return {pick({"HLEN", "HGETALL"}), key()};
      case 17:
        return {"HEXISTS", key(), member()};
      case 18:
      case 19:
        return zadd();
      case 20:
        return {pick({"ZSCORE", "ZRANK"}), key(), member()};
      case 21:
        return with({"ZREM", key()}, [this] { return member(); });
      case 22:
        return {"ZCARD", key()};
      case 23:
        return {pick({"ZCOUNT", "ZREMRANGEBYSCORE"}), key(), bound(), bound()};
      case 24:
        return scores({"ZRANGE", key(), span(), span()});
      case 25:
        return limited(scores({"ZRANGEBYSCORE", key(), bound(), bound()}));
      default:
        return {"PUBLISH", key(), member()};
    }
  }

  Words set() {
    Words words{"SET", key(), member()};
    while (one_in(2)) {
      const std::string option = pick({"NX", "XX", "PX", "PX", "px", "KEEPTTL", "FOO"});
      words.push_back(option);
      if (option == "PX" || option == "px") words.push_back(span());
    }
    return words;
  }
  Words zadd() {
    Words words{"ZADD", key()};
    while (one_in(4)) words.push_back(pick({"NX", "XX", "CH", "ch"}));
    do {
      words.push_back(score());
      words.push_back(member());
    } while (one_in(2));
    return words;
  }
  Words scores(Words words) {
    if (one_in(2)) words.push_back(pick({"WITHSCORES", "withscores"}));
    return words;
  }
  Words limited(Words words) {
    if (one_in(2)) {
      words.push_back("LIMIT");
      words.push_back(span());
      words.push_back(span());
    }
    return words;
  }
  template <class Draw>
  Words with(Words words, Draw draw_word) {
    do {
      words.push_back(draw_word());
    } while (one_in(2));
    return words;
  }

  std::string key() { return pick({"a", "b", "c", "d"}); }
  std::string member() { return pick({"x", "y", "z", "", std::string("b\0n", 3), "10", "-7"}); }
  std::string span() {
    if (one_in(2)) return pick({"0", "1", "2", "3", "5", "-1", "-2", "20"});
    if (one_in(2)) return pick({"3600000", "86400000"});
    return pick({"", " 1", "1 ", "01", "+1", "-0", "-", "1.5", "1e3", "abc", "9223372036854775807", "9223372036854775808",
                 "-9223372036854775808", "9223370000000000000", "99999999999999999999999"});
  }
  std::string score() {
    if (!one_in(6)) return pick({"0", "1", "2", "2.5", "-3", "1000000", "-0", "0.1", "inf", "-inf"});
    return pick({"", " 1", "1 ", "nan", "+inf", "1e400", "1e-400", "0x10", "1e3", "abc", "(1", std::string("1\0", 2)});
  }
  std::string bound() {
    if (!one_in(6)) return pick({"0", "1", "2", "-3", "(1", "(2.5", "-inf", "+inf", "inf", "(inf", "1000000"});
    return pick({"", " 1", "1 ", "(", "nan", "((1", "abc", "[1", "0x10", std::string("1\0x", 3)});
  }

  std::size_t draw(std::size_t choices) { return std::uniform_int_distribution<std::size_t>(0, choices - 1)(engine_); }
  bool one_in(std::size_t n) { return draw(n) == 0; }
  std::string pick(const std::vector<std::string>& from) { return from[draw(from.size())]; }

  std::mt19937_64 engine_;
  std::string scratch_;
};

TEST(KeyspaceDifferentialTest, RandomCommandsGetTheAnswersOfRedis) {
  constexpr int steps = 3000;
  Twin twin(RandomCommands::keys());
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    RandomCommands commands(seed);
    for (int step = 0; step < steps; ++step) {
      ASSERT_TRUE(twin.agree(commands.next())) << "seed " << seed << ", step " << step;
    }
  }
}

TEST(KeyspaceDifferentialTest, KeysExpireAtTheSameInstant) {
  Twin twin({"a"});
  for (int round = 0; round < 40; ++round) {
    ASSERT_TRUE(twin.agree({"SET", "a", "x", "PX", std::to_string(1 + round % 3)}));
    for (int look = 0; look < 20; ++look) ASSERT_TRUE(twin.agree({"PTTL", "a"}));
  }
}

// --- What a random sequence may miss ---

TEST(KeyspaceTest, AKeyIsThereUpToAndIncludingItsLastMillisecond) {
  Keyspace keyspace;
  keyspace.set_time(10ms);
  run(keyspace, {"SET", "a", "x", "PX", "5"});
  keyspace.set_time(15'999us);
  EXPECT_EQ(show(run(keyspace, {"PTTL", "a"})), ":0");
  EXPECT_EQ(show(run(keyspace, {"SET", "a", "y", "NX"})), "nil");
  keyspace.set_time(16ms);
  EXPECT_EQ(show(run(keyspace, {"PTTL", "a"})), ":-2");
  EXPECT_EQ(show(run(keyspace, {"SET", "a", "y", "NX"})), "+OK");
}

TEST(KeyspaceTest, TimeIsWhatItWasSetTo) {
  Keyspace keyspace;
  keyspace.set_time(1'700'000'000'000'042us);
  EXPECT_EQ(show(run(keyspace, {"TIME"})), "[\"1700000000\" \"42\" ]");
}

TEST(KeyspaceTest, PublishAnswersHowManyItReached) {
  std::vector<std::string> heard;
  Keyspace keyspace([&](std::string_view channel, std::string_view message) {
    heard.push_back(std::string(channel) + ": " + std::string(message));
    return std::int64_t{1};
  });
  EXPECT_EQ(show(run(keyspace, {"PUBLISH", "wake", "come"})), ":1");
  EXPECT_EQ(heard, (Words{"wake: come"}));
}

TEST(KeyspaceTest, LiveKeysAreThoseThatHaveNotRunOut) {
  Keyspace keyspace;
  run(keyspace, {"SET", "short", "x", "PX", "5"});
  run(keyspace, {"SET", "long", "x", "PX", "500"});
  keyspace.set_time(6ms);
  EXPECT_EQ(keyspace.live().size(), 1U);
  EXPECT_TRUE(keyspace.live().contains("long"));
}

}  // namespace
}  // namespace redlock::local
