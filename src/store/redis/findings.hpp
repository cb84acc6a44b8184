#pragma once

#include "store/diagnosis.hpp"
#include "store/redis/server_info.hpp"

namespace redlock::redis {

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

/// The finding that a server at which locks work did not tell all about itself, with the reason.
Finding unreported(const Fault& fault);

/// The diagnosis of a server that did not answer.
Diagnosis unreachable(const Fault& fault);

}  // namespace redlock::redis
