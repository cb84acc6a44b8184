#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/lease_handle.hpp"
#include "core/types.hpp"

namespace redlock {

/// One process among all that there ever were on this host.
struct ProcessIdentity {
  std::string boot;              ///< the boot id
  long pid = 0;                  ///< in the pid namespace where it was taken
  unsigned long long start = 0;  ///< in clock ticks since boot, as /proc/PID/stat has it
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

/// A lease that a `run` keeps for its command, and so for all that descends from it.
struct ParentLease {
  ProcessIdentity guard;  ///< the process that keeps it
  Ttl ttl;
  LeaseHandle handle;
};

/// REDLOCK_HELD: all of them, separated by blanks, the innermost last. Holds the tokens, so it is a secret, as REDLOCK_LEASE is.
/// An entry is `1:BOOT:PID:START:TTL:HANDLE`, TTL in milliseconds; it needs no quoting, whatever the keys.
std::string held_text(const std::vector<ParentLease>& leases);

/// Reads it; what it does not understand, it leaves out: a newer version may have written it.
std::vector<ParentLease> read_held(std::string_view text);

}  // namespace redlock
