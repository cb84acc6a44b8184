#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include "store/diagnosis.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/redis_server.hpp"

namespace redlock::redis {

/// Asks one vote, of whatever kind, what it tells of itself, and probes a lock, the rights to the
/// commands that the scripts call, and a subscription. Of a cluster the weakest of what its masters
/// tell. See ServerAddress::diagnose.
asio::awaitable<Diagnosis> diagnose(asio::any_io_executor executor, const Clock& clock,
                                    Endpoint endpoint, RedisServerOptions options,
                                    DiagnosisRequest request);

}  // namespace redlock::redis
