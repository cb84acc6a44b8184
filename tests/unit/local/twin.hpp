#pragma once

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../store/real_redis.hpp"
#include "store/local/commands.hpp"

namespace redlock::local {

using Words = std::vector<std::string>;

/// A reply in one line that shows its types, too. Of an error only the code, and no difference
/// between wrong words and a wrong type: which of them is found first does not matter to the
/// scripts.
inline std::string show(const Reply& reply) {
  switch (reply.type) {
    case Reply::Type::nil:
      return "nil";
    case Reply::Type::integer:
      return ":" + std::to_string(reply.integer);
    case Reply::Type::text:
      return ::testing::PrintToString(reply.text);
    case Reply::Type::status:
      return "+" + reply.text;
    case Reply::Type::error:
      return reply.text.starts_with("WRONGTYPE ")
                 ? "-ERR"
                 : "-" + reply.text.substr(0, reply.text.find(' '));
    case Reply::Type::array:
      break;
  }
  std::string text = "[";
  for (const Reply& element : reply.elements) text += show(element) + " ";
  return text + "]";
}

inline Reply from_hiredis(const redisReply& from) {
  if (from.type == REDIS_REPLY_INTEGER) return integer_reply(from.integer);
  Reply reply;
  if (from.type == REDIS_REPLY_ARRAY) {
    reply.type = Reply::Type::array;
    for (std::size_t i = 0; i < from.elements; ++i)
      reply.elements.push_back(from_hiredis(*from.element[i]));
  } else if (from.type != REDIS_REPLY_NIL) {
    reply.type = from.type == REDIS_REPLY_STRING   ? Reply::Type::text
                 : from.type == REDIS_REPLY_STATUS ? Reply::Type::status
                                                   : Reply::Type::error;
    reply.text.assign(from.str, static_cast<std::size_t>(from.len));
  }
  return reply;
}

/// A real Redis and a Keyspace that are told the same and must answer the same and hold the same.
///
/// Time makes that exact instead of almost so: each step is sent between two TIMEs, in one write,
/// and counts only when all of it fell within one millisecond of the server's clock; the keyspace
/// then runs it at that millisecond. A step that did not is undone at the server, from what the
/// keyspace holds, and tried again. So any ttl will do, and a key expires on both sides at the same
/// instant or the test fails.
class Twin {
 public:
  /// Only these keys are looked at when states are compared.
  explicit Twin(Words keys) : keys_(std::move(keys)) {
    socket_.reset(redisConnectUnix(redis_.endpoint().path.c_str()));
    if (!socket_ || socket_->err != 0) throw std::runtime_error("cannot connect to redis-server");
  }

  Keyspace& keyspace() { return keyspace_; }

  /// Both answer `words`; false, and a failure, when they differ.
  bool agree(const Words& words) {
    return agree(words, [&](Keyspace& keyspace) {
      return words[0] == "PERSIST" ? persist(keyspace, words[1])
                                   : execute(keyspace, views_of(words));
    });
  }

  /// The same for something that the keyspace's side does in its own way.
  bool agree(const Words& words, const std::function<Reply(Keyspace&)>& here) {
    const auto end = std::chrono::steady_clock::now() + testing::timeout;
    for (;;) {
      std::vector<Words> commands{{"TIME"}, words, contents_command()};
      for (const std::string& key : keys_) commands.push_back({"PEXPIRETIME", key});
      commands.push_back({"TIME"});
      const auto replies = ask(commands);
      const auto before = time_of(replies.front());
      if (std::chrono::floor<Milliseconds>(before) ==
          std::chrono::floor<Milliseconds>(time_of(replies.back()))) {
        keyspace_.set_time(before);
        const std::string held = state_here();
        const Reply reply = here(keyspace_);
        const std::string state = state_there(replies);
        if (show(reply) == show(replies[1]) && state_here() == state) return true;
        ADD_FAILURE() << ::testing::PrintToString(words) << "\nbefore    " << held << "\nredis     "
                      << show(replies[1]) << "\nkeyspace  " << show(reply) << "\nredis     "
                      << state << "\nkeyspace  " << state_here();
        return false;
      }
      if (std::chrono::steady_clock::now() > end)
        throw std::runtime_error("never within one millisecond");
      restore();
    }
  }

 private:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };

  /// What another client may do to a key, and no script does.
  static Reply persist(Keyspace& keyspace, const std::string& key) {
    Entry* entry = keyspace.find(key);
    if (entry == nullptr || !entry->expires) return integer_reply(0);
    entry->expires.reset();
    return integer_reply(1);
  }

  std::vector<Reply> ask(const std::vector<Words>& commands) {
    for (const Words& words : commands) {
      std::vector<const char*> data;
      std::vector<std::size_t> sizes;
      for (const std::string& word : words) {
        data.push_back(word.data());
        sizes.push_back(word.size());
      }
      redisAppendCommandArgv(socket_.get(), static_cast<int>(words.size()), data.data(),
                             sizes.data());
    }
    std::vector<Reply> replies;
    for (std::size_t i = 0; i < commands.size(); ++i) {
      void* raw = nullptr;
      if (redisGetReply(socket_.get(), &raw) != REDIS_OK) throw std::runtime_error(socket_->errstr);
      const std::unique_ptr<redisReply, Free> reply(static_cast<redisReply*>(raw));
      replies.push_back(from_hiredis(*reply));
    }
    return replies;
  }

  static std::chrono::microseconds time_of(const Reply& reply) {
    return std::chrono::seconds(std::stoll(reply.elements.at(0).text)) +
           std::chrono::microseconds(std::stoll(reply.elements.at(1).text));
  }

  /// {type, contents} for each key.
  [[nodiscard]] Words contents_command() const {
    Words words{"EVAL", R"(
      local all = {}
      for i, key in ipairs(KEYS) do
        local type = redis.call('TYPE', key).ok
        local contents = {}
        if type == 'string' then contents = {redis.call('GET', key)} end
        if type == 'hash' then contents = redis.call('HGETALL', key) end
        if type == 'zset' then contents = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
        all[i] = {type, contents}
      end
      return all)",
                std::to_string(keys_.size())};
    words.insert(words.end(), keys_.begin(), keys_.end());
    return words;
  }

  static Reply fields_of(const Hash& hash) {
    Reply fields = array_reply({});
    for (const auto& [name, value] : hash) {
      fields.elements.push_back(text_reply(name));
      fields.elements.push_back(text_reply(value));
    }
    return fields;
  }

  /// Redis gives a hash's fields in no order once one of them is long.
  static Reply in_order(const Reply& fields) {
    std::map<std::string, Reply> values;
    for (std::size_t i = 0; i + 1 < fields.elements.size(); i += 2)
      values.emplace(fields.elements[i].text, fields.elements[i + 1]);
    Reply ordered = fields;
    ordered.elements.clear();
    for (auto& [name, value] : values) {
      Reply field = value;
      field.text = name;
      ordered.elements.push_back(std::move(field));
      ordered.elements.push_back(std::move(value));
    }
    return ordered;
  }

  [[nodiscard]] std::string state_there(const std::vector<Reply>& replies) const {
    std::string state;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const Reply& held = replies.at(2).elements.at(i);
      const std::string& type = held.elements.at(0).text;
      const Reply& contents = held.elements.at(1);
      state += keys_[i] + ": " + type + " " + show(replies.at(3 + i)) + " " +
               show(type == "hash" ? in_order(contents) : contents) + "; ";
    }
    return state;
  }

  std::string state_here() {
    std::string state;
    for (const std::string& key : keys_) {
      const std::string type = execute(keyspace_, views_of(Words{"TYPE", key})).text;
      std::string contents = "[]";
      if (type == "string")
        contents = "[" + show(execute(keyspace_, views_of(Words{"GET", key}))) + " ]";
      if (type == "zset")
        contents =
            show(execute(keyspace_, views_of(Words{"ZRANGE", key, "0", "-1", "WITHSCORES"})));
      const Entry* entry = keyspace_.find(key);
      if (type == "hash") contents = show(in_order(fields_of(std::get<Hash>(entry->value))));
      const std::int64_t end = entry == nullptr ? -2
                               : entry->expires ? entry->expires->count()
                                                : -1;
      state += key + ": " + type + " :" + std::to_string(end) + " " + contents + "; ";
    }
    return state;
  }

  /// Gives the server what the keyspace holds. A key in its last milliseconds can't be made there,
  /// so its end is awaited.
  void restore() {
    std::vector<Words> commands{{"FLUSHALL"}};
    for (const auto& [key, entry] : keyspace_.live()) {
      while (entry.expires && *entry.expires < server_time() + std::chrono::milliseconds(5) &&
             *entry.expires >= server_time()) {
      }
      if (entry.expires && *entry.expires < server_time()) continue;
      if (const auto* text = std::get_if<std::string>(&entry.value))
        commands.push_back({"SET", key, *text});
      if (const auto* hash = std::get_if<Hash>(&entry.value)) {
        for (const auto& [field, value] : *hash) commands.push_back({"HSET", key, field, value});
      }
      if (const auto* zset = std::get_if<SortedSet>(&entry.value)) {
        for (const auto& [score, member] : zset->ranking())
          commands.push_back({"ZADD", key, exact(score), member});
      }
      if (entry.expires)
        commands.push_back({"PEXPIREAT", key, std::to_string(entry.expires->count())});
    }
    ask(commands);
    // Should a key have reached its end just then, it is gone on both sides from the next
    // millisecond on.
    const Milliseconds restored = server_time();
    while (server_time() == restored) {
    }
  }

  Milliseconds server_time() {
    return std::chrono::floor<Milliseconds>(time_of(ask({{"TIME"}}).front()));
  }

  static std::string exact(double number) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.17g", number);
    return text.data();
  }

  testing::Drive drive_;
  testing::RealRedis redis_{drive_};
  std::unique_ptr<redisContext, Free> socket_;
  Words keys_;
  Keyspace keyspace_;
};

}  // namespace redlock::local
