#include "support/line_writer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <thread>

#include "support/boot_clock.hpp"
#include "support/brief_write.hpp"
#include "support/kernel_calls.hpp"
#include "support/open_anew.hpp"

namespace redlock {
namespace {

/// The delay between two attempts of write_within().
constexpr Milliseconds retry_interval{5};

/// Whether write(2) will not block: there is room, or the write fails at once.
bool has_room(int fd) {
  pollfd writable{fd, POLLOUT, 0};
  return ::poll(&writable, 1, 0) != 0;
}

}  // namespace

LineWriter::LineWriter(int fd) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) throw_errno("fstat");
  if (S_ISSOCK(about.st_mode)) {
    kind_ = Kind::socket;
  } else if (S_ISREG(about.st_mode)) {
    kind_ = Kind::plain;
  } else {
    fd_ = open_anew(fd, O_WRONLY | O_APPEND);
    if (fd_) kind_ = Kind::plain;
  }
  if (!fd_) fd_.reset(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!fd_) throw_errno("dup");
}

bool LineWriter::write(std::string_view line) {
  if (!complete()) return false;
  if (line.empty()) return true;
  const std::size_t written = write_some(line);
  if (written == 0) return false;
  rest_ = line.substr(written);
  (void)complete();
  return true;
}

bool LineWriter::write_within(Milliseconds max_wait, std::string_view line) {
  const auto last = BootClock::now() + max_wait;
  for (bool begun = false;;) {
    begun = begun || write(line);
    if (begun && complete()) return true;
    if (!is_full_ || BootClock::now() >= last) return false;
    std::this_thread::sleep_for(retry_interval);
  }
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
    } else if (has_room(fd_.get())) {
      // Another process may fill it meanwhile, and a terminal may have less room than this.
      written = write_briefly(fd_.get(), bytes.substr(0, PIPE_BUF));
    } else {
      errno = EAGAIN;
      written = -1;
    }
  } while (written < 0 && errno == EINTR);
  is_full_ = written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  return written > 0 ? static_cast<std::size_t>(written) : 0;
}

}  // namespace redlock
