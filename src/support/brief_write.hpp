#pragma once

#include <sys/types.h>

#include <string_view>

namespace redlock {

/// Like write(2), but blocks for at most 10 ms, and fails with EAGAIN if nothing was written by
/// then. For a blocking descriptor that cannot be reopened, such as another user's terminal or
/// pipe. The first call installs a handler for SIGURG, which may interrupt system calls of other
/// threads.
ssize_t write_briefly(int fd, std::string_view bytes) noexcept;

}  // namespace redlock
