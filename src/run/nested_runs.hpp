#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/boot_clock.hpp"

namespace redlock::run {

/// How often to look whether nested runs have ended: they need not be our children, so nothing tells us.
inline constexpr Milliseconds nested_interval{50};

/// Holder processes below this one that live on its leases (see nesting.hpp), once its command has ended.
class NestedRuns {
 public:
  NestedRuns();

  /// Looks who they are. Takes the name of a holder that ends first: who comes later inherits nothing from us.
  void look();

  /// They are waited for: takes the usual name again.
  void wait_for_them() const;

  [[nodiscard]] const std::vector<pid_t>& holders() const noexcept { return holders_; }

 private:
  std::string own_name_;
  std::vector<pid_t> holders_;
};

}  // namespace redlock::run
