#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/local/lock_directory.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/tls_context.hpp"
#include "support/boot_clock.hpp"

namespace redlock::run {

/// Which servers to ask, and how long each may take.
struct ServerOptions {
  std::vector<redis::Endpoint> endpoints;        ///< no two with the same name, logins filled in; at least one if there is no `local`
  std::optional<local::Place> local;             ///< this host in their place
  std::optional<Duration> timeout;               ///< as the user set it
  unsigned replicas = 0;                         ///< how many must confirm a grant or an extension
  Duration restart_guard{};                      ///< zero: none, or too few servers for one
  std::shared_ptr<const redis::TlsContext> tls;  ///< when an endpoint needs it

  [[nodiscard]] std::size_t count() const noexcept { return local ? 1 : endpoints.size(); }
};

/// Their names, without logins.
std::vector<std::string> names_of(const ServerOptions& options);

/// What identifies this set of servers in a lease handle.
std::string fingerprint(const ServerOptions& options);

}  // namespace redlock::run
