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

}  // namespace

bool write_to_syslog(int level, std::string_view text) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return true;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(to.sun_path), log_path.data(), log_path.size());
  const std::string line = "<" + std::to_string(LOG_USER | level) + ">" +
                           local_time(wall_clock_now(), time_format) + " redlock-cli[" +
                           std::to_string(::getpid()) + "]: " + std::string(text);
  const void* const where = &to;
  const ssize_t sent = ::sendto(socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                                static_cast<const sockaddr*>(where), sizeof to);
  return sent >= 0 || errno != EAGAIN;
}

}  // namespace redlock
