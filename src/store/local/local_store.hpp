#pragma once

#include "store/registry.hpp"

namespace redlock::local {

/// This host itself, without a server: locks are files in a directory.
extern const Store store;

}  // namespace redlock::local
