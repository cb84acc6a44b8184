#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/local/keyspace.hpp"
#include "store/reply.hpp"

namespace redlock::local {

/// The words of a command, or a script's keys or arguments. The callee must not use them after it
/// returns.
using Arguments = std::span<const std::string_view>;

/// Views of `words`, to pass as Arguments; valid until `words` changes.
std::vector<std::string_view> views_of(std::span<const std::string> words);

/// Runs one of the Redis commands in the lock scripts, in the forms that they use:
///
///   GET · GETRANGE · STRLEN · SET key value [NX] [PX ms] · DEL key… · TYPE · PTTL · PEXPIRE · TIME
///   PUBLISH · PUBSUB NUMSUB channel…
///   HSET key field value… · HGET · HMGET · HDEL · HLEN
///   ZADD key score member · ZSCORE · ZRANK · ZREM · ZCARD · ZCOUNT · ZREMRANGEBYSCORE
///   ZRANGE key start stop [WITHSCORES] · ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset
///   count]
///
/// Names and options are in capitals. Replies are those of Redis 7.0. Errors only have the same
/// code: WRONGTYPE if the key has a value of another type, otherwise ERR, also for any command not
/// listed here.
Reply execute(Keyspace& keyspace, Arguments words);

/// A number as Redis writes it: with 17 digits, which are exact, or `inf` and `-inf`.
std::string write_number(double number);

}  // namespace redlock::local
