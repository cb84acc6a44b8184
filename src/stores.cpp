// The stores of this program, one row each. Examples name the first.
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
