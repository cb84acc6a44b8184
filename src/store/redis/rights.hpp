#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/redis/reply_reader.hpp"
#include "store/reply.hpp"

namespace redlock::redis {

/// Every command that the scripts call, once, in lower case and in a form that does no harm to a key that nobody else uses: inside a
/// script, Redis does not say which command was denied. The first makes the key a string that ends by itself, so that none of the others
/// makes anything of it; the last deletes it.
std::vector<Command> right_probes(const std::string& unused_key);

/// Whether this answer says that we may not run the command; that we may not touch the key is another matter.
bool is_command_denied(const Reply& reply, std::string_view command);

}  // namespace redlock::redis
