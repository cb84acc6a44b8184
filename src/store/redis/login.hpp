#pragma once

#include <vector>

#include "store/redis/endpoint.hpp"
#include "store/redis/command.hpp"

namespace redlock::redis {

/// The first commands on every connection to this endpoint.
std::vector<Command> login_commands(const Endpoint& endpoint);

}  // namespace redlock::redis
