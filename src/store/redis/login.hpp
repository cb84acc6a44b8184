#pragma once

#include <vector>

#include "store/redis/command.hpp"
#include "store/redis/endpoint.hpp"

namespace redlock::redis {

/// The first commands on every connection to this endpoint.
std::vector<Command> login_commands(const Endpoint& endpoint);

}  // namespace redlock::redis
