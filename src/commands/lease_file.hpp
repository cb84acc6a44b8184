#pragma once

#include <string>
#include <vector>

#include "core/lease.hpp"
#include "core/lease_handle.hpp"
#include "guard/command.hpp"
#include "support/result.hpp"

namespace redlock::commands {

/// The variables that pass a lease to a script or a command, in the order in which they are set.
/// With several keys, each key, token and fence is on a line of its own. The names are the same for
/// every handle, even an empty one; those for slots have a value only if the lease has such slots.
std::vector<guard::Variable> variables_of(const LeaseHandle& handle);

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
