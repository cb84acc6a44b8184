#include "store/local/commands.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "support/number.hpp"

namespace redlock::local {
namespace {

using Ranking = SortedSet::Ranking;

constexpr const char* not_an_integer = "ERR value is not an integer or out of range";
constexpr const char* not_a_score = "ERR a score is not a valid float";
constexpr const char* syntax_error = "ERR syntax error";
constexpr const char* wrong_type =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

constexpr auto max_time = std::numeric_limits<std::int64_t>::max();

Reply nil_reply() {
  return {};
}

template <class Container>
Reply size_reply(const Container& container) {
  return integer_reply(static_cast<std::int64_t>(container.size()));
}

std::optional<double> read_score(std::string_view word) {
  const std::string text(word);  // strtod needs a terminating zero
  char* end = nullptr;
  const double score = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || std::isnan(score)) return std::nullopt;
  return score;
}

// --- Keys of any type, and strings ---

Reply get(Keyspace&, std::string* text, Arguments) {
  return text != nullptr ? text_reply(*text) : nil_reply();
}

Reply strlen(Keyspace&, std::string* text, Arguments) {
  return text != nullptr ? size_reply(*text) : integer_reply(0);
}

/// Only supports the form that the scripts use, which starts at the first byte.
Reply getrange(Keyspace&, std::string* text, Arguments words) {
  const auto last = whole_number(words[3]);
  if (words[2] != "0" || !last || *last < 0) return error_reply(not_an_integer);
  const auto length = static_cast<std::size_t>(std::min(*last, max_time - 1)) + 1;
  return text_reply(text != nullptr ? text->substr(0, length) : std::string());
}

/// The expiry of a key with `span` ms left; nullopt if it is out of range. Scripts compute spans
/// from scores, and a lock file may contain any score.
std::optional<Milliseconds> end_after(const Keyspace& keyspace, std::string_view span) {
  const auto length = whole_number(span);
  if (!length || *length > max_time - keyspace.now().count()) return std::nullopt;
  return keyspace.now() + Milliseconds(*length);
}

Reply set(Keyspace& keyspace, Arguments words) {
  bool only_new = false;
  std::optional<Milliseconds> expires;
  for (std::size_t i = 3; i < words.size(); ++i) {
    if (words[i] == "NX") {
      only_new = true;
    } else if (words[i] == "PX" && i + 1 < words.size()) {
      expires = end_after(keyspace, words[++i]);
      if (!expires || *expires <= keyspace.now()) return error_reply(not_an_integer);
    } else {
      return error_reply(syntax_error);
    }
  }

  if (only_new && keyspace.find(words[1]) != nullptr) return nil_reply();
  keyspace.put(words[1], std::string(words[2])).expires = expires;
  return status_reply("OK");
}

Reply del(Keyspace& keyspace, Arguments words) {
  const Arguments keys = words.subspan(1);
  return integer_reply(std::count_if(keys.begin(), keys.end(),
                                     [&](std::string_view key) { return keyspace.erase(key); }));
}

Reply type(Keyspace& keyspace, Arguments words) {
  constexpr std::array names{"string", "hash", "zset"};
  const Entry* entry = keyspace.find(words[1]);
  return status_reply(entry != nullptr ? names.at(entry->value.index()) : "none");
}

Reply pttl(Keyspace& keyspace, Arguments words) {
  const Entry* entry = keyspace.find(words[1]);
  if (entry == nullptr) return integer_reply(-2);
  return integer_reply(entry->expires ? (*entry->expires - keyspace.now()).count() : -1);
}

Reply pexpire(Keyspace& keyspace, Arguments words) {
  const auto end = end_after(keyspace, words[2]);
  if (!end) return error_reply(not_an_integer);
  Entry* entry = keyspace.find(words[1]);
  if (entry == nullptr) return integer_reply(0);
  if (*end <= keyspace.now()) {
    keyspace.erase(words[1]);
  } else {
    entry->expires = end;
  }
  return integer_reply(1);
}

Reply time(Keyspace& keyspace, Arguments) {
  constexpr std::int64_t second = 1'000'000;
  const std::int64_t now = keyspace.time().count();
  return array_reply(
      {text_reply(std::to_string(now / second)), text_reply(std::to_string(now % second))});
}

Reply publish(Keyspace& keyspace, Arguments words) {
  return integer_reply(keyspace.publish(words[1], words[2]));
}

Reply pubsub(Keyspace& keyspace, Arguments words) {
  if (words[1] != "NUMSUB") return error_reply("ERR unknown subcommand");
  std::vector<Reply> counts;
  for (const std::string_view channel : words.subspan(2)) {
    counts.push_back(text_reply(std::string(channel)));
    counts.push_back(integer_reply(keyspace.subscribers(channel)));
  }
  return array_reply(std::move(counts));
}

// --- Hashes ---

Hash::iterator field_of(Hash& hash, std::string_view name) {
  return std::find_if(hash.begin(), hash.end(),
                      [&](const auto& field) { return field.first == name; });
}

Reply field_reply(Hash* hash, std::string_view name) {
  if (hash == nullptr) return nil_reply();
  const auto field = field_of(*hash, name);
  return field != hash->end() ? text_reply(field->second) : nil_reply();
}

Reply hlen(Keyspace&, Hash* hash, Arguments) {
  return hash != nullptr ? size_reply(*hash) : integer_reply(0);
}

Reply hset(Keyspace& keyspace, Hash* found, Arguments words) {
  if (words.size() % 2 == 1) return error_reply(syntax_error);
  Hash& hash = found != nullptr ? *found : std::get<Hash>(keyspace.put(words[1], Hash()).value);
  std::int64_t added = 0;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const auto field = field_of(hash, words[i]);
    if (field != hash.end()) {
      field->second = words[i + 1];
    } else {
      hash.emplace_back(words[i], words[i + 1]);
      ++added;
    }
  }
  return integer_reply(added);
}

Reply hget(Keyspace&, Hash* hash, Arguments words) {
  return field_reply(hash, words[2]);
}

Reply hmget(Keyspace&, Hash* hash, Arguments words) {
  std::vector<Reply> values;
  values.reserve(words.size() - 2);
  for (const std::string_view name : words.subspan(2)) values.push_back(field_reply(hash, name));
  return array_reply(std::move(values));
}

Reply hdel(Keyspace& keyspace, Hash* hash, Arguments words) {
  if (hash == nullptr) return integer_reply(0);
  const auto field = field_of(*hash, words[2]);
  if (field == hash->end()) return integer_reply(0);
  hash->erase(field);
  if (hash->empty()) keyspace.erase(words[1]);
  return integer_reply(1);
}

// --- Sorted sets ---

/// Members with scores from words[2] to words[3], lowest first, where `(5` means above 5; nullopt
/// if these are not scores.
std::optional<std::vector<Ranking::value_type>> members_between(SortedSet* zset, Arguments words) {
  const bool exclusive = words[2].starts_with('(');
  const auto min = read_score(words[2].substr(exclusive ? 1 : 0));
  const auto max = read_score(words[3]);
  if (!min || !max) return std::nullopt;

  std::vector<Ranking::value_type> members;
  if (zset == nullptr) return members;
  const Ranking& ranking = zset->ranking();
  for (auto at = ranking.lower_bound({*min, std::string()}); at != ranking.end(); ++at) {
    if (at->first > *max) break;
    if (!exclusive || at->first > *min) members.push_back(*at);
  }
  return members;
}

template <class Iterator>
Reply members_reply(Iterator begin, Iterator end, bool with_scores) {
  std::vector<Reply> elements;
  elements.reserve(static_cast<std::size_t>(std::distance(begin, end)) * (with_scores ? 2 : 1));
  for (auto at = begin; at != end; ++at) {
    elements.push_back(text_reply(at->second));
    if (with_scores) elements.push_back(text_reply(write_number(at->first)));
  }
  return array_reply(std::move(elements));
}

Reply zadd(Keyspace& keyspace, SortedSet* found, Arguments words) {
  const auto score = read_score(words[2]);
  if (!score) return error_reply(not_a_score);
  SortedSet& zset =
      found != nullptr ? *found : std::get<SortedSet>(keyspace.put(words[1], SortedSet()).value);
  return integer_reply(zset.put(words[3], *score) ? 1 : 0);
}

Reply zscore(Keyspace&, SortedSet* zset, Arguments words) {
  const auto score = zset != nullptr ? zset->score(words[2]) : std::nullopt;
  return score ? text_reply(write_number(*score)) : nil_reply();
}

Reply zrank(Keyspace&, SortedSet* zset, Arguments words) {
  const auto score = zset != nullptr ? zset->score(words[2]) : std::nullopt;
  if (!score) return nil_reply();
  const Ranking& ranking = zset->ranking();
  const auto at = ranking.find({*score, std::string(words[2])});
  return integer_reply(std::distance(ranking.begin(), at));
}

Reply zrem(Keyspace& keyspace, SortedSet* zset, Arguments words) {
  if (zset == nullptr || !zset->erase(words[2])) return integer_reply(0);
  if (zset->size() == 0) keyspace.erase(words[1]);
  return integer_reply(1);
}

Reply zcard(Keyspace&, SortedSet* zset, Arguments) {
  return zset != nullptr ? size_reply(*zset) : integer_reply(0);
}

Reply zcount(Keyspace&, SortedSet* zset, Arguments words) {
  const auto members = members_between(zset, words);
  return members ? size_reply(*members) : error_reply(not_a_score);
}

Reply zrange(Keyspace&, SortedSet* zset, Arguments words) {
  const bool with_scores = words.size() == 5 && words[4] == "WITHSCORES";
  if (words.size() > 4 && !with_scores) return error_reply(syntax_error);
  const auto start = whole_number(words[2]);
  const auto stop = whole_number(words[3]);
  if (!start || !stop) return error_reply(not_an_integer);

  const auto size = zset != nullptr ? static_cast<std::int64_t>(zset->size()) : 0;
  const std::int64_t first = std::max<std::int64_t>(*start < 0 ? *start + size : *start, 0);
  const std::int64_t last = std::min(*stop < 0 ? *stop + size : *stop, size - 1);
  if (first > last) return array_reply({});
  const auto begin = zset->ranking().begin();
  return members_reply(std::next(begin, first), std::next(begin, last + 1), with_scores);
}

Reply zrangebyscore(Keyspace&, SortedSet* zset, Arguments words) {
  bool with_scores = false;
  std::optional<std::int64_t> offset = 0;
  std::optional<std::int64_t> limit = max_time;
  for (std::size_t i = 4; i < words.size(); ++i) {
    if (words[i] == "WITHSCORES") {
      with_scores = true;
    } else if (words[i] == "LIMIT" && i + 2 < words.size()) {
      offset = whole_number(words[++i]);
      limit = whole_number(words[++i]);
    } else {
      return error_reply(syntax_error);
    }
  }
  if (!offset || !limit || *offset < 0 || *limit < 0) return error_reply(not_an_integer);
  const auto members = members_between(zset, words);
  if (!members) return error_reply(not_a_score);

  const auto size = static_cast<std::int64_t>(members->size());
  const auto first = members->begin() + std::min(*offset, size);
  return members_reply(first, first + std::min(*limit, members->end() - first), with_scores);
}

Reply zremrangebyscore(Keyspace& keyspace, SortedSet* zset, Arguments words) {
  const auto members = members_between(zset, words);
  if (!members) return error_reply(not_a_score);
  for (const auto& [score, member] : *members) zset->erase(member);
  if (zset != nullptr && zset->size() == 0) keyspace.erase(words[1]);
  return size_reply(*members);
}

// --- All of them ---

/// Runs `command` on the value of the key, or on null if there is none.
template <class T, Reply (*command)(Keyspace&, T*, Arguments)>
Reply on(Keyspace& keyspace, Arguments words) {
  Entry* entry = keyspace.find(words[1]);
  if (entry == nullptr) return command(keyspace, nullptr, words);
  T* value = std::get_if<T>(&entry->value);
  return value != nullptr ? command(keyspace, value, words) : error_reply(wrong_type);
}

struct Command {
  std::string_view name;
  std::size_t min_words;  ///< including the name
  std::size_t max_words;
  Reply (*run)(Keyspace&, Arguments);
};

constexpr auto any_number = std::numeric_limits<std::size_t>::max();

constexpr std::array commands{
    Command{"DEL", 2, any_number, del},
    Command{"GET", 2, 2, on<std::string, get>},
    Command{"GETRANGE", 4, 4, on<std::string, getrange>},
    Command{"HDEL", 3, 3, on<Hash, hdel>},
    Command{"HGET", 3, 3, on<Hash, hget>},
    Command{"HLEN", 2, 2, on<Hash, hlen>},
    Command{"HMGET", 3, any_number, on<Hash, hmget>},
    Command{"HSET", 4, any_number, on<Hash, hset>},
    Command{"PEXPIRE", 3, 3, pexpire},
    Command{"PTTL", 2, 2, pttl},
    Command{"PUBLISH", 3, 3, publish},
    Command{"PUBSUB", 2, any_number, pubsub},
    Command{"SET", 3, any_number, set},
    Command{"STRLEN", 2, 2, on<std::string, strlen>},
    Command{"TIME", 1, 1, time},
    Command{"TYPE", 2, 2, type},
    Command{"ZADD", 4, 4, on<SortedSet, zadd>},
    Command{"ZCARD", 2, 2, on<SortedSet, zcard>},
    Command{"ZCOUNT", 4, 4, on<SortedSet, zcount>},
    Command{"ZRANGE", 4, 5, on<SortedSet, zrange>},
    Command{"ZRANGEBYSCORE", 4, any_number, on<SortedSet, zrangebyscore>},
    Command{"ZRANK", 3, 3, on<SortedSet, zrank>},
    Command{"ZREM", 3, 3, on<SortedSet, zrem>},
    Command{"ZREMRANGEBYSCORE", 4, 4, on<SortedSet, zremrangebyscore>},
    Command{"ZSCORE", 3, 3, on<SortedSet, zscore>},
};

}  // namespace

std::vector<std::string_view> views_of(std::span<const std::string> words) {
  return {words.begin(), words.end()};
}

Reply execute(Keyspace& keyspace, Arguments words) {
  if (words.empty() || words[0].empty()) return error_reply("ERR unknown command");
  // The first letters distinguish most names, without a function call.
  const auto command = std::ranges::find_if(commands, [&](const Command& one) {
    return one.name.front() == words[0].front() && one.name == words[0];
  });
  if (command == commands.end()) return error_reply("ERR unknown command");
  if (words.size() < command->min_words || words.size() > command->max_words) {
    return error_reply(
        std::string("ERR wrong number of arguments for '").append(words[0]).append("' command"));
  }
  return command->run(keyspace, words);
}

std::string write_number(double number) {
  // The same text as from %.17g for nearly every score, in a tenth of the time. Negative zero takes
  // the slow path.
  constexpr double small_enough = 1e15;
  const bool is_whole = number == std::trunc(number) && std::abs(number) < small_enough;
  if (is_whole && (number != 0 || !std::signbit(number)))
    return std::to_string(static_cast<std::int64_t>(number));
  std::array<char, 32> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.17g", number);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace redlock::local
