#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/settings.hpp"
#include "store/local/place.hpp"
#include "store/redis/endpoint.hpp"

namespace redlock::cli {

/// Which servers to ask, and how long each may take.
struct ServerOptions {
  std::vector<redis::Endpoint> endpoints;  ///< no two with the same name, logins filled in; at least one if there is no `local`
  std::optional<local::Place> local;       ///< this host in their place
  std::optional<Duration> timeout;         ///< as the user set it

  [[nodiscard]] std::size_t count() const noexcept { return local ? 1 : endpoints.size(); }
};

/// Throws CommandError: config when no server is set at all, a URL is wrong, `local:` stands beside another server or a password file
/// cannot be read; usage when a URL on the command line is wrong or holds a password.
ServerOptions read_server_options(const Settings& settings);

/// What identifies this set of servers in a lease handle.
std::string fingerprint(const ServerOptions& options);

}  // namespace redlock::cli
