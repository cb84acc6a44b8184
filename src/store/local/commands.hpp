#pragma once

#include <span>
#include <string>
#include <string_view>

#include "store/local/keyspace.hpp"
#include "store/reply.hpp"

namespace redlock::local {

/// A command's name and what follows it.
using Arguments = std::span<const std::string>;

/// One of Redis's commands. Replies, their types and the texts of errors are those of Redis 7.0; an option that is not listed here is
/// answered as Redis answers one that it does not know.
///
///   GET · SET [NX|XX] [PX ms|KEEPTTL] · DEL · EXISTS · TYPE · PTTL · PEXPIRE · PEXPIREAT · PERSIST
///   HSET · HGET · HMGET · HDEL · HLEN · HEXISTS · HGETALL
///   ZADD [NX|XX] [CH] · ZSCORE · ZRANK · ZREM · ZCARD · ZCOUNT · ZRANGE start stop [WITHSCORES]
///   ZRANGEBYSCORE [WITHSCORES] [LIMIT] · ZREMRANGEBYSCORE · TIME · PUBLISH
struct Command {
  using Function = Reply (*)(Keyspace&, Arguments);

  std::string_view name;  ///< in capitals
  int arity;              ///< the words with the name; negative: at least so many
  Function run;           ///< wants as many arguments as the arity says

  [[nodiscard]] bool takes(std::size_t words) const noexcept;
};

/// Null when there is no such command; letters may be small.
const Command* find_command(std::string_view name);

/// What a client gets that sends this; `arguments` must not be empty.
Reply execute(Keyspace& keyspace, Arguments arguments);

}  // namespace redlock::local
