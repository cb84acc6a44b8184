#pragma once

#include <string>

#include "child/watched_process.hpp"

namespace redlock::child {

/// Reports when no process waits for our exit status: to the system log (LOG_USER, LOG_ERR, ident
/// redlock-cli) and to the stderr of the process, as it is now, if the process lives and we may
/// write there. `text` is one line, safe for a terminal. Neither a full pipe nor a hanging log or
/// file system delays the caller for longer than a moment (100 ms).
void post_notice(const WatchedProcess& process, const std::string& text);

}  // namespace redlock::child
