#pragma once

#include "store/redis/endpoint.hpp"
#include "store/registry.hpp"

namespace redlock::redis {

/// Redis and Valkey: servers of their own, masters that sentinels name, clusters; with TLS or
/// without.
extern const Store store;

/// The endpoint, with this login where it has none of its own.
Endpoint with_login(Endpoint endpoint, const DefaultLogin& login);

}  // namespace redlock::redis
