#pragma once

#include <cstdlib>
#include <string>

namespace redlock {

/// The value of an environment variable; empty when it is not set: for everything that we read, set
/// to nothing means the same.
inline std::string environment_value(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : std::string();
}

}  // namespace redlock
