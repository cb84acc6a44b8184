#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/lease_handle.hpp"
#include "core/types.hpp"

namespace redlock {

/// Identifies one process among all that ever existed on this host.
struct ProcessIdentity {
  std::string boot;              ///< the boot id
  long pid = 0;                  ///< in the pid namespace where it was taken
  unsigned long long start = 0;  ///< in clock ticks since boot, as in /proc/PID/stat
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

/// A lease that a `run` keeps for its command, and so for all descendants of it.
struct ParentLease {
  ProcessIdentity guard;  ///< the process that keeps it
  Ttl ttl;
  LeaseHandle handle;
};

/// REDLOCK_HELD: all parent leases, separated by blanks, the innermost last. Contains the tokens,
/// so it is a secret, like REDLOCK_LEASE.
/// An entry is `1:BOOT:PID:START:TTL:HANDLE`, TTL in milliseconds; it needs no quoting, whatever
/// the keys.
std::string held_text(const std::vector<ParentLease>& leases);

/// Reads it. Skips entries that it does not understand: a newer version may have written them.
std::vector<ParentLease> read_held(std::string_view text);

}  // namespace redlock
