#pragma once

#include <string>

#include "child/watched_process.hpp"

namespace redlock::child {

/// Tells those who should know, when nobody waits for our exit status: the system log (LOG_USER,
/// LOG_ERR, ident redlock-cli) and the stderr of the process, as it is now, if it lives and we may
/// write there. `text` is one line, safe for a terminal. Neither a full pipe nor a log or file
/// system that hangs keeps the caller for longer than a moment (100 ms).
void post_notice(const WatchedProcess& process, const std::string& text);

}  // namespace redlock::child
