#pragma once

#include "cli/read_server_options.hpp"
#include "cli/settings.hpp"
#include "core/lease_handle.hpp"

namespace redlock::cli {

/// The lease that extend and release work on: from --token-file, else from REDLOCK_LEASE, else from
/// -k (or REDLOCK_KEY) and REDLOCK_TOKEN. Throws CommandError: usage when there is none, or it is
/// for another key than -k names; config when it was acquired on another server set, or the file is
/// not to be trusted.
LeaseHandle find_lease(const Settings& settings, const run::ServerOptions& servers);

}  // namespace redlock::cli
