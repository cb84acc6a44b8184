#include "store/redis/command.hpp"

#include <hiredis/hiredis.h>

#include <array>
#include <new>

#include "core/protocol.hpp"
#include "store/script_calls.hpp"

namespace redlock::redis {
namespace {

template <class Words>
std::string encode(const Words& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  texts.reserve(words.size());
  lengths.reserve(words.size());
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* bytes = nullptr;
  const auto length =
      redisFormatCommandArgv(&bytes, static_cast<int>(texts.size()), texts.data(), lengths.data());
  if (length < 0) throw std::bad_alloc();
  std::string encoded(bytes, static_cast<std::size_t>(length));
  redisFreeCommand(bytes);
  return encoded;
}

}  // namespace

EncodedCommand::EncodedCommand(const Command& words) : bytes_(encode(words)) {}

EncodedCommand::EncodedCommand(std::span<const std::string_view> words) : bytes_(encode(words)) {}

std::vector<Command> login_commands(const Endpoint& endpoint,
                                    const std::optional<std::string>& password) {
  std::vector<Command> commands;
  if (endpoint.user || password) {
    // A user without a password is an ACL user with `nopass`, for which any password will do. AUTH
    // without the user name would log in the default user instead.
    Command auth{"AUTH"};
    if (endpoint.user) auth.push_back(*endpoint.user);
    auth.push_back(password.value_or(""));
    commands.push_back(std::move(auth));
  }
  if (endpoint.database != 0) commands.push_back({"SELECT", std::to_string(endpoint.database)});
  return commands;
}

EncodedCommand script_command(const ScriptCall& call) {
  const std::string key_count = std::to_string(call.keys.size());
  std::vector<std::string_view> words;
  words.reserve(3 + call.keys.size() + call.arguments.size());
  words.insert(words.end(), {"EVALSHA", scripts::sha1, key_count});
  words.insert(words.end(), call.keys.begin(), call.keys.end());
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  return EncodedCommand(words);
}

EncodedCommand load_scripts_command(const ScriptCall& call) {
  const std::array<std::string_view, 5> words{"EVAL", scripts::text, "1", call.keys.front(),
                                              scripts::none};
  return EncodedCommand(words);
}

EncodedCommand undo_command(const ScriptCall& release, bool alone) {
  std::vector<std::string_view> words{"EVAL", scripts::undo, alone ? "1" : "3",
                                      release.keys[protocol::key::lock]};
  if (!alone) {
    words.push_back(release.keys[protocol::key::readers]);
    words.push_back(release.keys[protocol::key::shares]);
  }
  words.push_back(undone_by(release));
  return EncodedCommand(words);
}

}  // namespace redlock::redis
