#include "support/line_writer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>

namespace redlock {

LineWriter::LineWriter(int fd) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) throw std::system_error(errno, std::generic_category(), "fstat");
  if (S_ISSOCK(about.st_mode)) {
    kind_ = Kind::socket;
  } else if (S_ISREG(about.st_mode)) {
    kind_ = Kind::plain;
  } else {
    // O_NONBLOCK is a property of the open file description, which we share with the caller. A pipe
    // or a terminal can be opened once more, unless it is another user's, or there is no /proc.
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    fd_.reset(::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (fd_) kind_ = Kind::plain;
  }
  if (!fd_) fd_.reset(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!fd_) throw std::system_error(errno, std::generic_category(), "dup");
}

bool LineWriter::write(std::string_view line) {
  if (!complete()) return false;
  const std::size_t written = write_some(line);
  if (written == 0) return false;
  rest_ = line.substr(written);
  (void)complete();
  return true;
}

bool LineWriter::complete() {
  while (!rest_.empty()) {
    const std::size_t written = write_some(rest_);
    if (written == 0) return false;
    rest_.erase(0, written);
  }
  return true;
}

std::size_t LineWriter::write_some(std::string_view bytes) {
  ssize_t written = 0;
  do {
    if (kind_ == Kind::socket) {
      written = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (kind_ == Kind::plain) {
      written = ::write(fd_.get(), bytes.data(), bytes.size());
    } else {
      pollfd writable{fd_.get(), POLLOUT, 0};
      if (::poll(&writable, 1, 0) != 1 || (writable.revents & POLLOUT) == 0) return 0;
      const std::size_t most = PIPE_BUF;
      written = ::write(fd_.get(), bytes.data(), std::min(bytes.size(), most));
    }
  } while (written < 0 && errno == EINTR);
  return written > 0 ? static_cast<std::size_t>(written) : 0;
}

}  // namespace redlock
