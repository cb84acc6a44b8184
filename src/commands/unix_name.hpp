#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace redlock::commands {

/// An address in the abstract namespace of unix sockets. It needs no file, and disappears with the
/// last descriptor of the socket. Source: unix(7).
class UnixName {
 public:
  /// Truncates a name that is longer than an address can hold.
  explicit UnixName(std::string_view name) {
    address_.sun_family = AF_UNIX;
    const std::string_view shown = name.substr(0, sizeof address_.sun_path - 1);
    // The name starts after the NUL that makes it abstract.
    std::copy(shown.begin(), shown.end(), &address_.sun_path[1]);
    size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + shown.size());
  }

  [[nodiscard]] const sockaddr* address() const noexcept {
    return reinterpret_cast<const sockaddr*>(&address_);
  }
  [[nodiscard]] socklen_t size() const noexcept { return size_; }

 private:
  sockaddr_un address_{};
  socklen_t size_;
};

}  // namespace redlock::commands
