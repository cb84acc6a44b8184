#pragma once

#include <string>

namespace redlock::guard {

/// Whether a service manager accepts notifications from us (NOTIFY_SOCKET, sd_notify(3)).
bool has_service_manager();

/// Sends it `NAME=value` lines. Never blocks; a message that cannot be sent at once is lost. The
/// manager may accept messages from the main process of the service alone (NotifyAccess=main), so
/// the front process must call this.
void notify_service_manager(const std::string& state);

}  // namespace redlock::guard
