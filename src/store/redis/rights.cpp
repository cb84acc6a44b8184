#include "store/redis/rights.hpp"

#include "core/helper_keys.hpp"
#include "core/protocol.hpp"

namespace redlock::redis {

std::vector<Command> right_probes(const std::string& unused_key, Milliseconds life_of_key) {
  const std::string life = std::to_string(life_of_key.count());
  const std::string channel = HelperKeys(*Resource::from(unused_key)).wake("doctor");
  return {
      {"set", unused_key, "x", "NX", "PX", life},
      {"get", unused_key},
      {"getrange", unused_key, "0", "0"},
      {"type", unused_key},
      {"pttl", unused_key},
      {"pexpire", unused_key, life},
      {"hset", unused_key, "f", "x"},
      {"hget", unused_key, "f"},
      {"hmget", unused_key, "f"},
      {"hdel", unused_key, "f"},
      {"zadd", unused_key, "0", "x"},
      {"zrem", unused_key, "x"},
      {"zscore", unused_key, "x"},
      {"zcard", unused_key},
      {"zcount", unused_key, "0", "0"},
      {"zrank", unused_key, "x"},
      {"zrange", unused_key, "0", "0"},
      {"zrangebyscore", unused_key, "0", "0"},
      {"zremrangebyscore", unused_key, "0", "0"},
      {"publish", channel, std::string(protocol::word::recheck)},
      {"pubsub", "numsub", channel},
      {"time"},
      {"del", unused_key},
  };
}

std::string right_to(const Command& probe) {
  return probe.front() == "pubsub" ? probe[0] + "|" + probe[1] : probe.front();
}

bool is_unknown_command(const Reply& reply) {
  return reply.type == Reply::Type::error && (reply.text.starts_with("ERR unknown command") ||
                                              reply.text.starts_with("ERR Unknown Redis command"));
}

bool is_denied(const Reply& reply, std::string_view right) {
  const auto names = [&reply](std::string_view command) {
    return reply.text.find("'" + std::string(command) + "'") != std::string::npos;
  };
  // Redis before 7 names the command without its subcommand.
  return reply.type == Reply::Type::error && reply.text.starts_with("NOPERM") &&
         (names(right) || names(right.substr(0, right.find('|'))));
}

}  // namespace redlock::redis
