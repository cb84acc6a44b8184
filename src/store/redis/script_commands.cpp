#include "store/redis/script_commands.hpp"

#include <array>

#include "core/protocol.hpp"
#include "store/script_calls.hpp"

namespace redlock::redis {

EncodedCommand script_command(const ScriptCall& call) {
  const std::string key_count = std::to_string(call.keys.size());
  std::vector<std::string_view> words;
  words.reserve(3 + call.keys.size() + call.arguments.size());
  words.insert(words.end(), {"EVALSHA", scripts::sha1, key_count});
  words.insert(words.end(), call.keys.begin(), call.keys.end());
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  return EncodedCommand(words);
}

EncodedCommand teaching_command(const ScriptCall& call) {
  const std::array<std::string_view, 5> words{"EVAL", scripts::text, "1", call.keys.front(),
                                              scripts::none};
  return EncodedCommand(words);
}

EncodedCommand undo_command(const ScriptCall& release, bool alone) {
  std::vector<std::string_view> words{"EVAL", scripts::undo, alone ? "1" : "2",
                                      release.keys[protocol::key::lock]};
  if (!alone) words.push_back(release.keys[protocol::key::readers]);
  words.push_back(undone_by(release));
  return EncodedCommand(words);
}

}  // namespace redlock::redis
