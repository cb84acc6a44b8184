// The commands against a real Redis: the same answers, the same state.
#include "store/local/commands.hpp"

#include <random>
#include <set>

#include "../store/called_commands.hpp"
#include "twin.hpp"

namespace redlock::local {
namespace {

using namespace std::chrono_literals;

Reply run(Keyspace& keyspace, const Words& words) {
  return execute(keyspace, views_of(words));
}

// --- Random commands ---

/// Draws commands in the forms that scripts use, most of them with words that make sense.
class RandomCommands {
 public:
  explicit RandomCommands(std::uint64_t seed) : engine_(seed) {}

  Words next() {
    Words words = whole();
    if (one_in(20)) words.pop_back();
    if (one_in(200)) words = {"LPUSH2", "a\r\nb", std::string(200, 'x')};
    return words;
  }

  static Words keys() { return {"a", "b", "c", "d"}; }

 private:
  Words whole() {
    switch (draw(21)) {
      case 0:
        return one_in(2) ? Words{"GET", key()}
                         : Words{"GETRANGE", key(), "0", pick({"0", "1", "255"})};
      case 1:
      case 2:
      case 3:
        return set();
      case 4:
        return with({"DEL"}, [this] { return key(); });
      case 5:
        return {pick({"TYPE", "PTTL", "ZCARD", "STRLEN", "HLEN"}), key()};
      case 6:
      case 7:
        return {"PEXPIRE", key(), span()};
      case 8:
      case 9:
        return with({"HSET", key()}, [this] { return member(); });
      case 10:
        return with({"HMGET", key()}, [this] { return member(); });
      case 11:
        return {pick({"HGET", "HDEL"}), key(), member()};
      case 12:
      case 13:
      case 14:
        return {"ZADD", key(), score(), member()};
      case 15:
        return {pick({"ZSCORE", "ZRANK", "ZREM"}), key(), member()};
      case 16:
        return {pick({"ZCOUNT", "ZREMRANGEBYSCORE"}), key(), min(), max()};
      case 17:
        return scores({"ZRANGE", key(), span(), span()});
      case 18:
        return limited(scores({"ZRANGEBYSCORE", key(), min(), max()}));
      case 19:
        return {"PUBSUB", "NUMSUB", key(), member()};
      default:
        return {"PUBLISH", key(), member()};
    }
  }
  Words set() {
    Words words{"SET", key(), member()};
    if (one_in(2)) words.push_back("NX");
    if (!one_in(3)) words.insert(words.end(), {"PX", span()});
    if (one_in(10)) words.push_back("FOO");
    return words;
  }
  Words scores(Words words) {
    if (one_in(2)) words.push_back("WITHSCORES");
    return words;
  }
  Words limited(Words words) {
    if (one_in(2))
      words.insert(words.end(), {"LIMIT", pick({"0", "1", "2"}), pick({"0", "1", "5"})});
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
    return pick({"", " 1", "1 ", "-", "1.5", "1e3", "abc", "9223372036854775807",
                 "9223372036854775808", "-9223372036854775808", "9223370000000000000", "inf"});
  }
  std::string score() {
    if (!one_in(6)) return pick({"0", "1", "2", "2.5", "-3", "1000000", "0.1", "inf", "-inf"});
    return pick({"", "1 ", "nan", "+inf", "0x10", "1e3", "abc", "(1"});
  }
  std::string min() {
    if (!one_in(6)) return pick({"0", "1", "-3", "(1", "(2.5", "-inf", "(-inf", "1000000"});
    return pick({"nan", "((1", "abc", "[1", "0x10"});
  }
  std::string max() {
    if (!one_in(6)) return pick({"0", "1", "2", "2.5", "+inf", "inf", "1000000"});
    return pick({"nan", "abc", "[1", "0x10"});
  }

  std::size_t draw(std::size_t choices) {
    return std::uniform_int_distribution<std::size_t>(0, choices - 1)(engine_);
  }
  bool one_in(std::size_t n) { return draw(n) == 0; }
  std::string pick(const std::vector<std::string>& from) { return from[draw(from.size())]; }

  std::mt19937_64 engine_;
};

TEST(CommandsDifferentialTest, RandomCommandsGetTheAnswersOfRedis) {
  constexpr int steps = 3000;
  Twin twin(RandomCommands::keys());
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    RandomCommands commands(seed);
    for (int step = 0; step < steps; ++step) {
      ASSERT_TRUE(twin.agree(commands.next())) << "seed " << seed << ", step " << step;
    }
  }
}

TEST(CommandsDifferentialTest, KeysExpireAtTheSameInstant) {
  Twin twin({"a"});
  for (int round = 0; round < 40; ++round) {
    ASSERT_TRUE(twin.agree({"SET", "a", "x", "PX", std::to_string(1 + round % 3)}));
    for (int look = 0; look < 20; ++look) ASSERT_TRUE(twin.agree({"PTTL", "a"}));
  }
}

// --- What a random sequence may miss ---

TEST(CommandsTest, AllCommandsOfTheScriptsAreKnown) {
  const std::set<std::string> names = testing::called_commands();
  EXPECT_GE(names.size(), 20U);
  for (const std::string& name : names) {
    Keyspace keyspace;
    EXPECT_NE(run(keyspace, {name}).text, "ERR unknown command") << name;
  }
}

TEST(CommandsTest, AValueOfAnotherTypeIsSaidToBeSo) {
  for (const Words& words : std::vector<Words>{{"GET", "hash"},
                                               {"HGET", "zset", "a"},
                                               {"HMGET", "text", "a"},
                                               {"HSET", "text", "a", "b"},
                                               {"HDEL", "zset", "a"},
                                               {"ZADD", "hash", "1", "a"},
                                               {"ZSCORE", "text", "a"},
                                               {"ZRANK", "hash", "a"},
                                               {"ZREM", "text", "a"},
                                               {"ZCARD", "hash"},
                                               {"ZCOUNT", "text", "0", "1"},
                                               {"ZRANGE", "hash", "0", "1"},
                                               {"ZRANGEBYSCORE", "hash", "0", "1"},
                                               {"ZREMRANGEBYSCORE", "text", "0", "1"}}) {
    Keyspace keyspace;
    run(keyspace, {"SET", "text", "x"});
    run(keyspace, {"HSET", "hash", "a", "b"});
    run(keyspace, {"ZADD", "zset", "1", "a"});
    EXPECT_TRUE(run(keyspace, words).text.starts_with("WRONGTYPE ")) << words[0];
  }
}

TEST(CommandsTest, AKeyIsThereUpToAndIncludingItsLastMillisecond) {
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

TEST(CommandsTest, TimeIsWhatItWasSetTo) {
  Keyspace keyspace;
  keyspace.set_time(1'700'000'000'000'042us);
  EXPECT_EQ(show(run(keyspace, {"TIME"})), "[\"1700000000\" \"42\" ]");
}

TEST(CommandsTest, PublishAnswersHowManyItReached) {
  std::vector<std::string> notified;
  Keyspace keyspace([&](std::string_view channel, std::string_view message) {
    notified.push_back(std::string(channel) + ": " + std::string(message));
    return std::int64_t{1};
  });
  EXPECT_EQ(show(run(keyspace, {"PUBLISH", "wake", "come"})), ":1");
  EXPECT_EQ(notified, (Words{"wake: come"}));
}

TEST(CommandsTest, PubsubCountsWhoSubscribesToAChannel) {
  Keyspace keyspace({}, [](std::string_view channel) { return channel == "wake" ? 1 : 0; });
  EXPECT_EQ(show(run(keyspace, {"PUBSUB", "NUMSUB", "wake", "none"})),
            "[\"wake\" :1 \"none\" :0 ]");
  EXPECT_EQ(show(run(keyspace, {"PUBSUB", "CHANNELS"})), "-ERR");
}

TEST(CommandsTest, LiveKeysAreThoseThatHaveNotRunOut) {
  Keyspace keyspace;
  run(keyspace, {"SET", "short", "x", "PX", "5"});
  run(keyspace, {"SET", "long", "x", "PX", "500"});
  keyspace.set_time(6ms);
  EXPECT_EQ(keyspace.live().size(), 1U);
  EXPECT_TRUE(keyspace.live().contains("long"));
}

}  // namespace
}  // namespace redlock::local
