#include "guard/notify_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "support/environment.hpp"
#include "support/unique_fd.hpp"

namespace redlock::guard {
namespace {

/// A path, or a name in the abstract namespace, which is written with an `@`; empty for any other
/// kind of address (vsock:…).
std::string address() {
  const std::string text = environment_value("NOTIFY_SOCKET");
  const bool is_known = text.starts_with('/') || text.starts_with('@');
  return is_known && text.size() > 1 && text.size() < sizeof(sockaddr_un::sun_path) ? text : "";
}

}  // namespace

bool has_service_manager() {
  return !address().empty();
}

void notify_service_manager(const std::string& state) {
  const std::string name = address();
  if (name.empty()) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(to.sun_path), name.data(), name.size());
  if (name.front() == '@') to.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return;
  const void* const where = &to;
  (void)::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                 static_cast<const sockaddr*>(where), length);
}

}  // namespace redlock::guard
