#pragma once

#include <string_view>

namespace redlock {

/// Writes a line to the system log, as LOG_USER and `redlock-cli[PID]`. `level`: LOG_ERR and its
/// like (syslog(3)). Unlike syslog() it never waits for a log that is busy or hangs: then it
/// returns false, and the line is lost unless it is written again.
bool write_to_syslog(int level, std::string_view text);

}  // namespace redlock
