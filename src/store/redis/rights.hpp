#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/redis/command.hpp"
#include "store/script.hpp"

namespace redlock::redis {

/// Every command that the scripts run, once, in lower case and in a form that does no harm to a key
/// that no other client uses: inside a script, Redis does not say which command was denied. The
/// first makes the key a string with an expiry, so that none of the others can create anything; the
/// last deletes it.
std::vector<Command> right_probes(const std::string& unused_key);

/// The right that a probe needs, as an ACL rule has it: `get`, `pubsub|numsub`.
std::string right_to(const Command& probe);

/// Whether this answer says that the right is missing. A denied key does not count.
bool is_denied(const Reply& reply, std::string_view right);

}  // namespace redlock::redis
