#pragma once

#include <optional>
#include <string>

#include "cli/read_server_options.hpp"
#include "cli/settings.hpp"
#include "core/lease_handle.hpp"

namespace redlock::cli {

/// The lease for extend and release: from --token-file, else from REDLOCK_LEASE, else from -k (or
/// REDLOCK_KEY) and REDLOCK_TOKEN. Throws CommandError: usage if there is none, or -k names another
/// key; config if it was acquired on another server set, or the file cannot be trusted.
LeaseHandle find_lease(const Settings& settings, const commands::ServerOptions& servers);

/// Whether the command line names keys, and there is neither a --token-file nor a lease of any of
/// these keys in the environment; with a slot, none that has this slot. Throws CommandError.
bool names_other_locks(const Settings& settings, const commands::ServerOptions& servers,
                       const std::optional<std::string>& slot);

/// Whether the lease is of one key, with this slot and no other.
bool is_of_slot_alone(const LeaseHandle& lease, const std::string& slot);

}  // namespace redlock::cli
