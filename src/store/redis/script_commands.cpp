#include "store/redis/script_commands.hpp"

#include "core/protocol.hpp"
#include "store/script_calls.hpp"

namespace redlock::redis {
Command script_command(const ScriptCall& call) {
  Command command{"EVALSHA", std::string(scripts::sha1), std::to_string(call.keys.size())};
  command.insert(command.end(), call.keys.begin(), call.keys.end());
  command.insert(command.end(), call.arguments.begin(), call.arguments.end());
  return command;
}

Command teaching_command(const ScriptCall& call) {
  return {"EVAL", std::string(scripts::text), "1", call.keys.front(), std::string(scripts::none)};
}

Command undo_command(const ScriptCall& release, bool alone) {
  Command undo{"EVAL", std::string(scripts::undo), alone ? "1" : "2",
               release.keys[protocol::key::lock]};
  if (!alone) undo.push_back(release.keys[protocol::key::readers]);
  undo.push_back(undone_by(release));
  return undo;
}

}  // namespace redlock::redis
