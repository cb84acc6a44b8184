#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/password_file.hpp"
#include "support/result.hpp"

namespace redlock::redis {

/// The address at which a server listens.
struct Address {
  std::string host;  ///< name or numeric address, IPv6 without brackets
  std::uint16_t port = 0;

  /// `host:port`, `[v6]:port`.
  [[nodiscard]] std::string text() const;
  friend auto operator<=>(const Address&, const Address&) = default;
};

/// Whether the name or address leads to this host: `localhost`, 127.0.0.0/8, ::1, or one of the
/// unspecified addresses 0.0.0.0 and ::.
bool is_loopback(std::string_view host);

/// How to reach one vote, and its login: a single server, the master that sentinels name, or the
/// master of a key's slot in a cluster.
struct Endpoint {
  enum class Kind { tcp, unix_socket, sentinel, cluster };

  Kind kind = Kind::tcp;
  std::string host;  ///< of a tcp server: as Address::host
  std::uint16_t port = 6379;
  std::string path;              ///< of the socket
  std::vector<Address> members;  ///< the sentinels; some servers of the cluster; in the order given
  std::string master;            ///< the master's name at the sentinels
  unsigned database = 0;
  std::optional<std::string> user;
  std::optional<std::string> password;
  std::shared_ptr<PasswordFile> password_file{};  ///< used instead of `password` unless null
  /// The password was not set for this server in particular (REDISCLI_AUTH), so a server without a
  /// password is used all the same.
  bool password_is_general = false;
  /// The login for the sentinels, which is independent of the master's.
  std::optional<std::string> sentinel_user;
  std::optional<std::string> sentinel_password;
  bool tls = false;

  /// The URL without users and passwords, in one spelling per server: for messages and
  /// fingerprints.
  [[nodiscard]] std::string name() const;

  /// The endpoint of a single server at this address, with the same login, database and TLS
  /// setting: the sentinels' master, or a node of the cluster.
  [[nodiscard]] Endpoint server_at(const Address& address) const;

  /// The password to log in with, read from the file if there is one.
  [[nodiscard]] std::optional<std::string> current_password() const;

  /// Whether it is reached over a network, not on this host.
  [[nodiscard]] bool is_remote() const;

  /// The endpoint of the sentinel at this address.
  [[nodiscard]] Endpoint sentinel_at(const Address& address) const;
};

/// Reads
/// `redis://[user[:password]@]host[:port][/db]`, `unix://[user[:password]@]/path[?db=N]`,
/// `sentinel://[user[:password]@]host[:port],.../name[/db][?sentinel-user=U][&sentinel-password=P]`
/// (login and db are the master's) and `cluster://[user[:password]@]host[:port],...`, and with TLS
/// `rediss://`, `sentinels://`, `clusters://`. `valkey://` and `valkeys://` are `redis://` and
/// `rediss://`; capitals in schemes and hosts do not matter. Users, passwords, hosts, names and
/// paths may be percent-encoded. The error is one clause for the user that never repeats a
/// password.
Result<Endpoint, std::string> parse_endpoint(std::string_view url);

}  // namespace redlock::redis
