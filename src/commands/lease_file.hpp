#pragma once

#include <string>
#include <vector>

#include "core/lease.hpp"
#include "core/lease_handle.hpp"
#include "support/result.hpp"

namespace redlock::commands {

/// The variables that pass a lease to a script, in the order in which they are written. With
/// several keys, each key, token and fence is on a line of its own.
struct LeaseVariables {
  std::string lease;  ///< REDLOCK_LEASE, the handle
  std::string key;
  std::string token;
  std::string fence;
  std::optional<std::string> slot;       ///< REDLOCK_SLOT, the lowest slot; nullopt without slots
  std::optional<std::string> slot_list;  ///< REDLOCK_SLOT_LIST, all of them: `1 4`
  /// REDLOCK_SLOT_NAME and REDLOCK_SLOT_NAME_LIST; nullopt unless the slots have names.
  std::optional<std::string> slot_name;
  std::optional<std::string> slot_name_list;
};
LeaseVariables variables_of(const LeaseHandle& handle);

/// The handle of these leases, of which there is at least one.
LeaseHandle handle_of(const std::vector<Lease>& leases, std::string servers);

/// `export REDLOCK_KEY=… REDLOCK_TOKEN=… …`, every value quoted, for eval.
std::string export_line(const LeaseHandle& handle);

/// The line that --export prints when no lease was acquired: it makes `eval` unset the variables
/// and fail with `exit_code`.
std::string failed_export_line(int exit_code);

/// Checks that `path` is a regular file, or does not exist, and that its directory is writable. A
/// rename would also replace anything else, such as a device or a symbolic link. The error is one
/// clause for the user.
Result<void, std::string> check_lease_file_target(const std::string& path);

/// Writes the lease as `NAME='value'` lines to a new file of mode 0600, which is synced and then
/// renamed to `path`, so that no reader sees a part of it. The error is one clause for the user.
Result<void, std::string> write_lease_file(const std::string& path, const LeaseHandle& handle);

/// Reads a file that write_lease_file() wrote. Refuses symbolic links, files of other users, and
/// files that others can read. The error is one clause for the user.
Result<LeaseHandle, std::string> read_lease_file(const std::string& path);

}  // namespace redlock::commands
