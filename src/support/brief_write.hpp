#pragma once

#include <sys/types.h>

#include <string_view>

namespace redlock {

/// write(2) to a descriptor that blocks and cannot be opened anew: another user's terminal or pipe.
/// Waits for 10 ms at most. As write(2); errno is EAGAIN when nothing was written in that time. For
/// a process of one thread, or one whose other threads may be interrupted by SIGURG, which has a
/// handler from the first call on.
ssize_t write_briefly(int fd, std::string_view bytes) noexcept;

}  // namespace redlock
