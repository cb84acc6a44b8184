#pragma once

#include <string>

namespace redlock {

/// The value of an environment variable; empty when it is not set: for everything that we read, set
/// to nothing means the same.
std::string environment_value(const char* name);

}  // namespace redlock
