#pragma once

#include <string>

#include "proc/watched_process.hpp"

namespace redlock::guard {

/// Reports `text` where no process waits for our exit status: to the system log (LOG_USER, LOG_ERR,
/// ident redlock-cli), and to the current stderr of the process, if it lives and we may write
/// there. `text` is one line, safe for a terminal. A full pipe, or a log or file system that hangs,
/// delays the caller by 100 ms at most.
void post_notice(const proc::WatchedProcess& process, const std::string& text);

}  // namespace redlock::guard
