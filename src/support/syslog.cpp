#include "support/syslog.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "support/timestamp.hpp"
#include "support/unique_fd.hpp"

namespace redlock {
namespace {

constexpr std::string_view log_path = "/dev/log";

/// `Nov 22 08:55:01`, the form that every log daemon reads. It is in English because the program
/// sets no locale.
constexpr const char* time_format = "%b %e %H:%M:%S";

/// A socket that is connected to the log; on failure none, with errno.
UniqueFd connect_to_log(int type) {
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(to.sun_path), log_path.data(), log_path.size());
  const void* const where = &to;
  if (::connect(socket.get(), static_cast<const sockaddr*>(where), sizeof to) == 0) return socket;
  const int error = errno;
  socket.reset();
  errno = error;
  return socket;
}

}  // namespace

bool write_to_syslog(int level, std::string_view text) {
  std::string line = "<" + std::to_string(LOG_USER | level) + ">" +
                     local_time(wall_clock_now(), time_format) + " redlock-cli[" +
                     std::to_string(::getpid()) + "]: " + std::string(text);
  UniqueFd socket = connect_to_log(SOCK_DGRAM);
  if (!socket && errno == EPROTOTYPE) {
    // A stream needs the end of each line: NUL, as syslog(3) sends it.
    socket = connect_to_log(SOCK_STREAM);
    line += '\0';
  }
  if (!socket) return errno != EAGAIN;
  const ssize_t sent = ::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent >= 0 || errno != EAGAIN;
}

}  // namespace redlock
