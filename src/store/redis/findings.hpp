#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/diagnosis.hpp"
#include "store/redis/server_info.hpp"

namespace redlock::redis {

/// Unanswered::question of the further connections to an address.
inline constexpr std::string_view more_connections_question = "INFO server on another connection";

/// The demands on a server.
struct Demands {
  Duration restart_guard{};  ///< zero: none, or too few servers for one
  unsigned replicas = 0;     ///< how many must confirm a grant
};

/// The diagnosis of a server that answered, from its report. `rights`: the result of the lock
/// probe. Pure.
Diagnosis diagnosis_of(const ServerReport& report, Finding rights, const Demands& demands);

/// The finding that waiters get no notifications from a server, with the reason.
Finding unnotified(const Fault& fault);

/// The finding that it is not known whether these rights are missing, with the reason. No rights:
/// none is known.
Finding untried(const std::vector<std::string>& rights, const Fault& fault);

/// The finding that a server at which locks work did not tell all about itself, with the reason.
Finding unreported(const Fault& fault);

/// The diagnosis of a server that did not answer.
Diagnosis unreachable(const Fault& fault);

}  // namespace redlock::redis
