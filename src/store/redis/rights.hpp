#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/redis/command.hpp"
#include "store/script.hpp"
#include "support/boot_clock.hpp"

namespace redlock::redis {

/// Every command that the scripts run, once, in lower case, in a form that is harmless with a key
/// that no other client uses. They are needed because Redis does not report which command was
/// denied inside a script. The first makes the key a string with an expiry, so that none of the
/// others can create data for `life`; the last deletes it.
std::vector<Command> right_probes(const std::string& unused_key, Milliseconds life);

/// The right that a probe needs, as written in an ACL rule: `get`, `pubsub|numsub`.
std::string right_to(const Command& probe);

/// Whether this answer shows that the server lacks the command: it is renamed or disabled.
bool is_unknown_command(const Reply& reply);

/// Whether this answer shows that the right to the command is missing. A denied key does not count.
bool is_denied(const Reply& reply, std::string_view right);

}  // namespace redlock::redis
