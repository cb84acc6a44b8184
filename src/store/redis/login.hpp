#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/redis/command.hpp"
#include "store/redis/endpoint.hpp"

namespace redlock::redis {

/// The first commands on a connection to this endpoint. `password`: Endpoint::current_password().
std::vector<Command> login_commands(const Endpoint& endpoint,
                                    const std::optional<std::string>& password);

}  // namespace redlock::redis
