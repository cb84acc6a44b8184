#pragma once

#include "support/unique_fd.hpp"

namespace redlock {

/// Opens what `fd` refers to once more, with O_NONBLOCK and close-on-exec, in `mode` (of open(2)).
/// O_NONBLOCK belongs to the open file description, which we share with the caller's processes, so
/// it must not be set there. A pipe or terminal can be reopened unless it belongs to another user
/// or /proc is missing. After su(1) or sudo(8) the terminal belongs to another user, but /dev/tty
/// opens it for all. Empty if it cannot be opened.
UniqueFd open_anew(int fd, int mode);

}  // namespace redlock
