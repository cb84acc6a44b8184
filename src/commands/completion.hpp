#pragma once

#include <string>
#include <vector>

#include "commands/session.hpp"

namespace redlock::commands {

/// How long each server may take to list its keys for a completion: long enough for servers nearby.
inline constexpr Milliseconds completion_timeout{300};

/// The locked keys with this prefix, for a completion: those that the servers list in time.
std::vector<std::string> locked_keys(Session& session, std::string prefix);

}  // namespace redlock::commands
