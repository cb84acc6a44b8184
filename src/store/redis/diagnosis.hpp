#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include "store/diagnosis.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/redis_server.hpp"

namespace redlock::redis {

/// Asks one vote, of any kind, what it reports of itself, and probes a lock, the rights to the
/// commands in the scripts, and a subscription. For a cluster it reports the weakest of its
/// masters. See ServerAddress::diagnose.
asio::awaitable<Diagnosis> diagnose(asio::any_io_executor executor, const Clock& clock,
                                    Endpoint endpoint, RedisServerOptions options,
                                    DiagnosisRequest request);

}  // namespace redlock::redis
