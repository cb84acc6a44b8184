#pragma once

#include <string>

namespace redlock::child {

/// Whether a service manager wants to be told how we are (NOTIFY_SOCKET, sd_notify(3)).
bool has_service_manager();

/// Tells it: `NAME=value` lines. Never blocks; what cannot be sent at once is lost. A manager
/// accepts it from the main process of the service alone (NotifyAccess=main), so the front process
/// is to call this.
void tell_service_manager(const std::string& state);

}  // namespace redlock::child
