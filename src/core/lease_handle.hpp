#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace redlock {

/// Identifies a set of servers: the same set gives the same text, whatever the order or repetition.
/// Not a secret. The fingerprint of the sorted identities.
std::string server_set_fingerprint(std::vector<std::string> identities);

/// The content of REDLOCK_LEASE, passed between commands: enough to extend and release a lease.
/// Contains the tokens, so it is a secret.
/// Opaque to users.
///
/// Text form: `1.MODES.FINGERPRINT`, then `.KEY.TOKEN.FENCE` for each key, with KEY in base64url.
/// MODES has one letter for each key. x: exclusive. s: shared. n: shared with a slot, whose number
/// follows the fence as `.SLOT`. m: shared with several slots, as `.SLOT-SLOT`. d: shared with
/// slots by name, as `.NAMES`, in base64url and separated by commas. b: inherited from a parent
/// lease, so that releasing it has no effect.
struct LeaseHandle {
  struct Part {
    Resource resource;
    Token token;
    Fence fence;
    bool inherited = false;
    Hold hold{};
    friend bool operator==(const Part&, const Part&) = default;
  };
  std::vector<Part> parts;  ///< at least one; sorted by key, each key once
  std::string servers;      ///< server_set_fingerprint()

  [[nodiscard]] std::string text() const;

  /// nullopt for a text that this version did not write.
  static std::optional<LeaseHandle> from_text(std::string_view text);
};

/// Identifies one process among all that ever existed on this host.
struct ProcessIdentity {
  std::string boot;              ///< the boot id
  long pid = 0;                  ///< in the pid namespace where it was taken
  unsigned long long start = 0;  ///< in clock ticks since boot, as in /proc/PID/stat
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

/// A lease that a `run` keeps for its command and all descendants of the command.
struct ParentLease {
  ProcessIdentity guard;  ///< the process that keeps it
  Ttl ttl;
  LeaseHandle handle;
};

/// The content of REDLOCK_HELD: all parent leases, separated by blanks, the innermost last.
/// Contains the tokens, so it is a secret, like REDLOCK_LEASE. An entry is
/// `1:BOOT:PID:START:TTL:HANDLE`, with TTL in milliseconds. It needs no quoting, whatever the keys.
std::string held_text(const std::vector<ParentLease>& leases);

/// Reads the content of REDLOCK_HELD. Skips entries that it does not understand: a newer version
/// may have written them.
std::vector<ParentLease> read_held(std::string_view text);

}  // namespace redlock
