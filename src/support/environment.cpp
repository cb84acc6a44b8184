#include "support/environment.hpp"

#include <cstdlib>

namespace redlock {

std::string environment_value(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : std::string();
}

}  // namespace redlock
