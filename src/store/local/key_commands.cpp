// Commands on keys of any type and on strings.
#include <array>
#include <limits>

#include "store/local/command_parts.hpp"

namespace redlock::local::commands {
namespace {

constexpr auto longest = std::numeric_limits<std::int64_t>::max();

Reply invalid_expire_time(std::string_view command) {
  return error_reply("ERR invalid expire time in '" + std::string(command) + "' command");
}

struct SetOptions {
  bool only_new = false;
  bool only_there = false;
  bool keep_ttl = false;
  const std::string* milliseconds = nullptr;
};

std::optional<SetOptions> read_set_options(Arguments arguments) {
  SetOptions options;
  for (std::size_t i = 3; i < arguments.size(); ++i) {
    if (is_word(arguments[i], "NX") && !options.only_there) {
      options.only_new = true;
    } else if (is_word(arguments[i], "XX") && !options.only_new) {
      options.only_there = true;
    } else if (is_word(arguments[i], "KEEPTTL") && options.milliseconds == nullptr) {
      options.keep_ttl = true;
    } else if (is_word(arguments[i], "PX") && !options.keep_ttl && i + 1 < arguments.size()) {
      options.milliseconds = &arguments[++i];
    } else {
      return std::nullopt;
    }
  }
  return options;
}

/// PEXPIRE and PEXPIREAT, which differ in where time begins.
Reply expire(Keyspace& keyspace, Arguments arguments, std::string_view name, Milliseconds base) {
  if (arguments.size() > 3) return error_reply("ERR Unsupported option " + arguments[3]);
  const auto when = read_integer(arguments[2]);
  if (!when) return error_reply(std::string(not_an_integer));
  if (*when > longest - base.count()) return invalid_expire_time(name);
  const Milliseconds end = base + Milliseconds(*when);
  Entry* entry = keyspace.find(arguments[1]);
  if (entry == nullptr) return integer_reply(0);
  if (end <= keyspace.now()) {
    keyspace.erase(arguments[1]);
  } else {
    entry->expires = end;
  }
  return integer_reply(1);
}

}  // namespace

Reply get(Keyspace& keyspace, Arguments arguments) {
  const auto value = value_of<std::string>(keyspace, arguments[1]);
  if (!value) return error_reply(std::string(wrong_type));
  return *value != nullptr ? text_reply(**value) : nil_reply();
}

Reply set(Keyspace& keyspace, Arguments arguments) {
  const auto options = read_set_options(arguments);
  if (!options) return error_reply(std::string(syntax_error));
  std::optional<Milliseconds> expires;
  if (options->milliseconds != nullptr) {
    const auto span = read_integer(*options->milliseconds);
    if (!span) return error_reply(std::string(not_an_integer));
    if (*span <= 0 || *span > longest - keyspace.now().count()) return invalid_expire_time("set");
    expires = keyspace.now() + Milliseconds(*span);
  }
  const Entry* before = keyspace.find(arguments[1]);
  if ((options->only_new && before != nullptr) || (options->only_there && before == nullptr)) return nil_reply();
  if (options->keep_ttl && before != nullptr) expires = before->expires;
  keyspace.put(arguments[1], arguments[2]).expires = expires;
  return status_reply("OK");
}

Reply del(Keyspace& keyspace, Arguments arguments) {
  std::int64_t count = 0;
  for (const std::string& key : arguments.subspan(1)) count += keyspace.erase(key) ? 1 : 0;
  return integer_reply(count);
}

Reply exists(Keyspace& keyspace, Arguments arguments) {
  std::int64_t count = 0;
  for (const std::string& key : arguments.subspan(1)) count += keyspace.find(key) != nullptr ? 1 : 0;
  return integer_reply(count);
}

Reply type(Keyspace& keyspace, Arguments arguments) {
  constexpr std::array names{"string", "hash", "zset"};
  const Entry* entry = keyspace.find(arguments[1]);
  return status_reply(entry != nullptr ? names.at(entry->value.index()) : "none");
}

Reply pttl(Keyspace& keyspace, Arguments arguments) {
  const Entry* entry = keyspace.find(arguments[1]);
  if (entry == nullptr) return integer_reply(-2);
  return integer_reply(entry->expires ? (*entry->expires - keyspace.now()).count() : -1);
}

Reply pexpire(Keyspace& keyspace, Arguments arguments) {
  return expire(keyspace, arguments, "pexpire", keyspace.now());
}

Reply pexpireat(Keyspace& keyspace, Arguments arguments) {
  return expire(keyspace, arguments, "pexpireat", Milliseconds(0));
}

Reply persist(Keyspace& keyspace, Arguments arguments) {
  Entry* entry = keyspace.find(arguments[1]);
  if (entry == nullptr || !entry->expires) return integer_reply(0);
  entry->expires.reset();
  return integer_reply(1);
}

Reply time(Keyspace& keyspace, Arguments) {
  constexpr std::int64_t second = 1'000'000;
  const std::int64_t now = keyspace.time().count();
  return array_reply({text_reply(std::to_string(now / second)), text_reply(std::to_string(now % second))});
}

Reply publish(Keyspace& keyspace, Arguments arguments) {
  return integer_reply(keyspace.publish(arguments[1], arguments[2]));
}

}  // namespace redlock::local::commands
