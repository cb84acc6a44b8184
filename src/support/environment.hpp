#pragma once

#include <cstdlib>
#include <string>

namespace redlock {

/// The value of an environment variable; empty if it is not set. For all variables that use this,
/// an empty value means the same as none.
inline std::string environment_value(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : std::string();
}

}  // namespace redlock
