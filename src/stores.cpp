// Puts the stores of this program together: a row each. The first is the one that examples name.
#include <array>

#include "store/local/local_store.hpp"
#include "store/redis/redis_store.hpp"
#include "store/registry.hpp"

namespace redlock {

const StoreRegistry& stores() {
  static constexpr std::array<const Store*, 2> rows{&redis::store, &local::store};
  static constexpr StoreRegistry registry{rows};
  return registry;
}

}  // namespace redlock
