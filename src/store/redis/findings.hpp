#pragma once

#include "store/diagnosis.hpp"
#include "store/redis/server_info.hpp"

namespace redlock::redis {

/// The demands on a server.
struct Demands {
  Duration restart_guard{};  ///< zero: none, or too few servers for one
  unsigned replicas = 0;     ///< how many must confirm a grant
};

/// The diagnosis of a server that answered: judges what it reports. `rights` is the result of a
/// lock on a key of its own. Pure.
Diagnosis diagnosis_of(const ServerReport& report, Finding rights, const Demands& demands);

/// That waiters get no notifications from a server, for this reason.
Finding unnotified(const Fault& fault);

/// The diagnosis of a server that did not answer.
Diagnosis unreachable(const Fault& fault);

}  // namespace redlock::redis
