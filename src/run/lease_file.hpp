#pragma once

#include <string>
#include <vector>

#include "core/lease.hpp"
#include "core/lease_handle.hpp"
#include "support/result.hpp"

namespace redlock::run {

/// The variables that hand a lease to a script, in the order in which they are written. Of several
/// keys the keys, tokens and fences stand on a line each.
struct LeaseVariables {
  std::string lease;  ///< REDLOCK_LEASE, the handle
  std::string key;
  std::string token;
  std::string fence;
  std::optional<std::string> slot;       ///< REDLOCK_SLOT, the lowest, when there is a slot
  std::optional<std::string> slot_list;  ///< REDLOCK_SLOT_LIST, all of them: `1 4`
};
LeaseVariables variables_of(const LeaseHandle& handle);

/// The handle of these leases. At least one.
LeaseHandle handle_of(const std::vector<Lease>& leases, std::string servers);

/// `export REDLOCK_KEY=… REDLOCK_TOKEN=… …`, every value quoted, for eval.
std::string export_line(const LeaseHandle& handle);

/// What --export prints when there is no lease: it makes `eval` unset the variables and fail with
/// `exit_code`.
std::string failed_export_line(int exit_code);

/// Whether a lease file may replace what is there: a regular file, or nothing. A rename would also
/// replace anything else, such as a device or a symbolic link. The error is one clause for the
/// user.
Result<void, std::string> check_lease_file_target(const std::string& path);

/// Writes the lease as `NAME='value'` lines: a new file of mode 0600, synced, then renamed over
/// `path`; no reader ever sees half of it. The error is one clause for the user.
Result<void, std::string> write_lease_file(const std::string& path, const LeaseHandle& handle);

/// Reads what write_lease_file() wrote; refuses links, files of other users and files that others
/// can read.
Result<LeaseHandle, std::string> read_lease_file(const std::string& path);

}  // namespace redlock::run
