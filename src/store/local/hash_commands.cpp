#include <algorithm>

#include "store/local/command_parts.hpp"

namespace redlock::local::commands {
namespace {

Hash::iterator field_of(Hash& hash, std::string_view name) {
  return std::find_if(hash.begin(), hash.end(), [&](const auto& field) { return field.first == name; });
}

Reply value_reply(Hash* hash, std::string_view name) {
  if (hash == nullptr) return nil_reply();
  const auto field = field_of(*hash, name);
  return field != hash->end() ? text_reply(field->second) : nil_reply();
}

}  // namespace

Reply hset(Keyspace& keyspace, Arguments arguments) {
  if (arguments.size() % 2 == 1) return error_reply(wrong_arity(arguments[0]));
  const auto found = value_of<Hash>(keyspace, arguments[1]);
  if (!found) return error_reply(std::string(wrong_type));
  Hash& hash = *found != nullptr ? **found : std::get<Hash>(keyspace.put(arguments[1], Hash()).value);
  std::int64_t added = 0;
  for (std::size_t i = 2; i < arguments.size(); i += 2) {
    const auto field = field_of(hash, arguments[i]);
    if (field != hash.end()) {
      field->second = arguments[i + 1];
    } else {
      hash.emplace_back(arguments[i], arguments[i + 1]);
      ++added;
    }
  }
  return integer_reply(added);
}

Reply hget(Keyspace& keyspace, Arguments arguments) {
  const auto hash = value_of<Hash>(keyspace, arguments[1]);
  if (!hash) return error_reply(std::string(wrong_type));
  return value_reply(*hash, arguments[2]);
}

Reply hmget(Keyspace& keyspace, Arguments arguments) {
  const auto hash = value_of<Hash>(keyspace, arguments[1]);
  if (!hash) return error_reply(std::string(wrong_type));
  std::vector<Reply> values;
  for (const std::string& name : arguments.subspan(2)) values.push_back(value_reply(*hash, name));
  return array_reply(std::move(values));
}

Reply hdel(Keyspace& keyspace, Arguments arguments) {
  const auto hash = value_of<Hash>(keyspace, arguments[1]);
  if (!hash) return error_reply(std::string(wrong_type));
  if (*hash == nullptr) return integer_reply(0);
  std::int64_t removed = 0;
  for (const std::string& name : arguments.subspan(2)) {
    const auto field = field_of(**hash, name);
    if (field == (*hash)->end()) continue;
    (*hash)->erase(field);
    ++removed;
  }
  if ((*hash)->empty()) keyspace.erase(arguments[1]);
  return integer_reply(removed);
}

Reply hlen(Keyspace& keyspace, Arguments arguments) {
  const auto hash = value_of<Hash>(keyspace, arguments[1]);
  if (!hash) return error_reply(std::string(wrong_type));
  return integer_reply(*hash != nullptr ? static_cast<std::int64_t>((*hash)->size()) : 0);
}

Reply hexists(Keyspace& keyspace, Arguments arguments) {
  const auto hash = value_of<Hash>(keyspace, arguments[1]);
  if (!hash) return error_reply(std::string(wrong_type));
  return integer_reply(*hash != nullptr && field_of(**hash, arguments[2]) != (*hash)->end() ? 1 : 0);
}

Reply hgetall(Keyspace& keyspace, Arguments arguments) {
  const auto hash = value_of<Hash>(keyspace, arguments[1]);
  if (!hash) return error_reply(std::string(wrong_type));
  std::vector<Reply> fields;
  if (*hash != nullptr) {
    for (const auto& [name, value] : **hash) {
      fields.push_back(text_reply(name));
      fields.push_back(text_reply(value));
    }
  }
  return array_reply(std::move(fields));
}

}  // namespace redlock::local::commands
