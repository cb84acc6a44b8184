#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include "store/diagnosis.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/redis_server.hpp"

namespace redlock::redis {

/// Diagnoses one vote of any kind: asks for its report, and probes a lock, the rights to the
/// commands in the scripts, and a subscription. The report of a cluster has the weakest guarantees
/// of its masters. See ServerAddress::diagnose.
asio::awaitable<Diagnosis> diagnose(asio::any_io_executor executor, const Clock& clock,
                                    Endpoint endpoint, RedisServerOptions options,
                                    DiagnosisRequest request);

}  // namespace redlock::redis
