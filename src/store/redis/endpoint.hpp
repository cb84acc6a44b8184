#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace redlock::redis {

/// Where one Redis server is and how to log in.
struct Endpoint {
  enum class Kind { tcp, unix_socket };

  Kind kind = Kind::tcp;
  std::string host;  ///< name or numeric address, IPv6 without brackets
  std::uint16_t port = 6379;
  std::string path;  ///< of the socket
  unsigned database = 0;
  std::optional<std::string> user;
  std::optional<std::string> password;
  bool tls = false;

  /// The URL without user and password, in one spelling per server: for people and fingerprints.
  [[nodiscard]] std::string name() const;
};

/// Reads `redis://[user[:password]@]host[:port][/db]`, the same with `rediss://` (TLS), and `unix://[user[:password]@]/path[?db=N]`; user,
/// password, host and path may be percent-encoded. The error is one clause for the user that never repeats a password.
Result<Endpoint, std::string> parse_endpoint(std::string_view url);

}  // namespace redlock::redis
