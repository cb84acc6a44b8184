#include "store/redis/script_commands.hpp"

#include "core/protocol.hpp"
#include "store/script_calls.hpp"

namespace redlock::redis {
namespace {

/// Without a copy of the words, of which one may be the scripts' text.
EncodedCommand encode(std::initializer_list<std::string_view> words) {
  EncodedCommand command(words.size());
  for (const std::string_view word : words) command.add(word);
  return command;
}

}  // namespace

EncodedCommand script_command(const ScriptCall& call) {
  EncodedCommand command(3 + call.keys.size() + call.arguments.size());
  command.add("EVALSHA");
  command.add(scripts::sha1);
  command.add(std::to_string(call.keys.size()));
  for (const std::string& key : call.keys) command.add(key);
  for (const std::string& argument : call.arguments) command.add(argument);
  return command;
}

EncodedCommand teaching_command(const ScriptCall& call) {
  return encode({"EVAL", scripts::text, "1", call.keys.front(), scripts::none});
}

EncodedCommand undo_command(const ScriptCall& release, bool alone) {
  const std::string& lock = release.keys[protocol::key::lock];
  if (alone) return encode({"EVAL", scripts::undo, "1", lock, undone_by(release)});
  return encode({"EVAL", scripts::undo, "2", lock, release.keys[protocol::key::readers],
                 undone_by(release)});
}

}  // namespace redlock::redis
