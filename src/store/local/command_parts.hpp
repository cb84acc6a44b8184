#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/local/commands.hpp"
#include "support/result.hpp"

namespace redlock::local {

/// What commands are made of: replies, numbers as Redis reads and writes them, and keys of a certain type.

Reply nil_reply();
Reply integer_reply(std::int64_t number);
Reply text_reply(std::string text);
Reply status_reply(std::string text);
Reply error_reply(std::string text);
Reply array_reply(std::vector<Reply> elements);

inline constexpr std::string_view wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr std::string_view not_an_integer = "ERR value is not an integer or out of range";
inline constexpr std::string_view not_a_float = "ERR value is not a valid float";
inline constexpr std::string_view not_a_range = "ERR min or max is not a float";
inline constexpr std::string_view syntax_error = "ERR syntax error";
std::string wrong_arity(std::string_view command);  ///< of any case

/// Letters may differ in case; `upper` is in capitals.
bool is_word(std::string_view text, std::string_view upper);

/// A decimal number of 64 bits without leading zeros, blanks or a plus.
std::optional<std::int64_t> read_integer(std::string_view text);

/// What strtod(3) reads, all of it, but for a NaN, leading blanks and what does not fit.
std::optional<double> read_float(const std::string& text);

/// With the 17 digits that lose nothing, `inf` and `-inf`.
std::string write_float(double number);

/// The value of the key if it is a T; null when there is no such key; nothing when it is of another type.
template <class T>
std::optional<T*> value_of(Keyspace& keyspace, std::string_view key) {
  Entry* entry = keyspace.find(key);
  if (entry == nullptr) return nullptr;
  if (T* value = std::get_if<T>(&entry->value)) return value;
  return std::nullopt;
}

// The commands, by the type that they work on.
namespace commands {
Reply get(Keyspace&, Arguments);
Reply set(Keyspace&, Arguments);
Reply del(Keyspace&, Arguments);
Reply exists(Keyspace&, Arguments);
Reply type(Keyspace&, Arguments);
Reply pttl(Keyspace&, Arguments);
Reply pexpire(Keyspace&, Arguments);
Reply pexpireat(Keyspace&, Arguments);
Reply persist(Keyspace&, Arguments);
Reply time(Keyspace&, Arguments);
Reply publish(Keyspace&, Arguments);

Reply hset(Keyspace&, Arguments);
Reply hget(Keyspace&, Arguments);
Reply hmget(Keyspace&, Arguments);
Reply hdel(Keyspace&, Arguments);
Reply hlen(Keyspace&, Arguments);
Reply hexists(Keyspace&, Arguments);
Reply hgetall(Keyspace&, Arguments);

Reply zadd(Keyspace&, Arguments);
Reply zscore(Keyspace&, Arguments);
Reply zrank(Keyspace&, Arguments);
Reply zrem(Keyspace&, Arguments);
Reply zcard(Keyspace&, Arguments);
Reply zcount(Keyspace&, Arguments);
Reply zrange(Keyspace&, Arguments);
Reply zrangebyscore(Keyspace&, Arguments);
Reply zremrangebyscore(Keyspace&, Arguments);
}  // namespace commands

}  // namespace redlock::local
