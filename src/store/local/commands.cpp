#include "store/local/commands.hpp"

#include <algorithm>
#include <array>

#include "store/local/command_parts.hpp"

namespace redlock::local {
namespace {

constexpr std::array table{
    Command{"GET", 2, commands::get},
    Command{"SET", -3, commands::set},
    Command{"DEL", -2, commands::del},
    Command{"EXISTS", -2, commands::exists},
    Command{"TYPE", 2, commands::type},
    Command{"PTTL", 2, commands::pttl},
    Command{"PEXPIRE", -3, commands::pexpire},
    Command{"PEXPIREAT", -3, commands::pexpireat},
    Command{"PERSIST", 2, commands::persist},
    Command{"TIME", 1, commands::time},
    Command{"PUBLISH", 3, commands::publish},
    Command{"HSET", -4, commands::hset},
    Command{"HGET", 3, commands::hget},
    Command{"HMGET", -3, commands::hmget},
    Command{"HDEL", -3, commands::hdel},
    Command{"HLEN", 2, commands::hlen},
    Command{"HEXISTS", 3, commands::hexists},
    Command{"HGETALL", 2, commands::hgetall},
    Command{"ZADD", -4, commands::zadd},
    Command{"ZSCORE", 3, commands::zscore},
    Command{"ZRANK", 3, commands::zrank},
    Command{"ZREM", -3, commands::zrem},
    Command{"ZCARD", 2, commands::zcard},
    Command{"ZCOUNT", 4, commands::zcount},
    Command{"ZRANGE", -4, commands::zrange},
    Command{"ZRANGEBYSCORE", -4, commands::zrangebyscore},
    Command{"ZREMRANGEBYSCORE", 4, commands::zremrangebyscore},
};

/// Redis repeats so much of a name that it does not know, and of what followed it.
constexpr std::size_t most_repeated = 128;

std::string unknown_command(Arguments arguments) {
  std::string text = "ERR unknown command '" + arguments[0].substr(0, most_repeated) + "', with args beginning with: ";
  std::string repeated;
  for (const std::string& argument : arguments.subspan(1)) {
    if (repeated.size() >= most_repeated) break;
    repeated += "'" + argument.substr(0, most_repeated - repeated.size()) + "' ";
  }
  text += repeated;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return text;
}

}  // namespace

bool Command::takes(std::size_t words) const noexcept {
  return arity >= 0 ? words == static_cast<std::size_t>(arity) : words >= static_cast<std::size_t>(-arity);
}

const Command* find_command(std::string_view name) {
  const auto* found = std::find_if(table.begin(), table.end(), [&](const Command& command) { return is_word(name, command.name); });
  return found == table.end() ? nullptr : found;
}

Reply execute(Keyspace& keyspace, Arguments arguments) {
  const Command* command = find_command(arguments[0]);
  if (command == nullptr) return error_reply(unknown_command(arguments));
  if (!command->takes(arguments.size())) return error_reply(wrong_arity(command->name));
  return command->run(keyspace, arguments);
}

}  // namespace redlock::local
