#include "support/open_anew.hpp"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <string>

namespace redlock {

UniqueFd open_anew(int fd, int mode) {
  const int flags = mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  UniqueFd opened(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), flags));
  if (!opened && ::isatty(fd) == 1 && ::tcgetsid(fd) == ::getsid(0))
    opened.reset(::open("/dev/tty", flags));
  return opened;
}

}  // namespace redlock
