#pragma once

#include <array>

#include "store/local/local_store.hpp"
#include "store/redis/redis_store.hpp"
#include "store/registry.hpp"
#include "toy_store.hpp"

namespace redlock::testing {

inline constexpr std::array<const Store*, 3> stores{&redis::store, &local::store, &toy::store};
inline constexpr StoreRegistry registry{stores};

}  // namespace redlock::testing
