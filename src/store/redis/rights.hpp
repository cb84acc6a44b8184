#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/redis/command.hpp"
#include "store/reply.hpp"

namespace redlock::redis {

/// Every command that the scripts run, once, in lower case and in a form that does no harm to a key
/// that no other client uses: inside a script, Redis does not say which command was denied. The
/// first makes the key a string with an expiry, so that none of the others can create anything; the
/// last deletes it.
std::vector<Command> right_probes(const std::string& unused_key);

/// Whether this answer says that we may not run the command. A denied key does not count.
bool is_command_denied(const Reply& reply, std::string_view command);

}  // namespace redlock::redis
