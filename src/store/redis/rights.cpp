#include "store/redis/rights.hpp"

namespace redlock::redis {
namespace {

/// In milliseconds; longer than the trials take.
constexpr std::string_view trial_life = "5000";

}  // namespace

std::vector<Command> right_trials(const std::string& unused_key) {
  const std::string life(trial_life);
  return {
      {"set", unused_key, "x", "NX", "PX", life},
      {"get", unused_key},
      {"type", unused_key},
      {"pttl", unused_key},
      {"pexpire", unused_key, life},
      {"hset", unused_key, "f", "x"},
      {"hmget", unused_key, "f"},
      {"zadd", unused_key, "0", "x"},
      {"zscore", unused_key, "x"},
      {"zremrangebyscore", unused_key, "0", "0"},
      {"time"},
      {"del", unused_key},
  };
}

bool is_command_denied(const Reply& reply, std::string_view command) {
  return reply.type == Reply::Type::error && reply.text.starts_with("NOPERM") &&
         reply.text.find("'" + std::string(command) + "'") != std::string::npos;
}

}  // namespace redlock::redis
