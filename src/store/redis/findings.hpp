#pragma once

#include <vector>

#include "store/diagnosis.hpp"
#include "store/redis/server_report.hpp"

namespace redlock::redis {

/// What a server must be fit for.
struct Demands {
  Duration restart_guard{};  ///< zero: none, or too few servers for one
  unsigned replicas = 0;     ///< how many must confirm a grant
};

/// The diagnosis of a server that could be asked: what it tells, judged. `rights` is what a lock on
/// a key of its own showed. Pure.
Diagnosis diagnosis_of(const ServerReport& report, Finding rights, const Demands& demands);

/// Of one that could not.
Diagnosis unreachable(const Fault& fault);

}  // namespace redlock::redis
