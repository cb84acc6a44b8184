#pragma once

#include <cstddef>
#include <optional>

#include "core/protocol.hpp"

namespace redlock {

/// How a lock is wanted: exclusive, or shared with other readers (PROTOCOL M1); in one of a number
/// of slots, if there is one (M2).
struct Mode {
  static constexpr std::size_t max_slots = protocol::max_slots;

  bool shared = false;
  std::size_t slots = 0;  ///< number of slots; more than zero only with `shared`
  friend bool operator==(const Mode&, const Mode&) = default;
};

/// How a lease holds its lock.
struct Hold {
  bool shared = false;
  std::optional<std::size_t> slot{};  ///< from 0 on
  friend bool operator==(const Hold&, const Hold&) = default;
};

}  // namespace redlock
