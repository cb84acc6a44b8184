#pragma once

#include <string_view>

namespace redlock {

/// Writes a line to the system log, as LOG_USER and `redlock-cli[PID]`. `level` is one of
/// syslog(3), such as LOG_ERR. Unlike syslog(), it never waits for a busy or hanging log: it
/// returns false, and the line is lost unless the caller writes it again.
bool write_to_syslog(int level, std::string_view text);

}  // namespace redlock
