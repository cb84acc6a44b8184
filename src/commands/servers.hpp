#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/registry.hpp"
#include "support/boot_clock.hpp"

namespace redlock::commands {

/// One of the configured servers.
struct ServerSource {
  std::shared_ptr<const ServerAddress> address;
  std::shared_ptr<Tls> tls;  ///< null unless the address uses it; shared by all servers of a store
};

/// Which servers to use, and how.
struct ServerOptions {
  std::vector<ServerSource> servers;  ///< at least one; no two cast the same vote
  DefaultLogin login;
  std::optional<Duration> timeout;  ///< the timeout of a request; nullopt: the user did not set one
  unsigned replicas = 0;            ///< how many replicas must confirm a grant or an extension
  Duration restart_guard{};   ///< how long a restarted server must not vote; zero: no guard, or too
                              ///< few servers for one
  std::string guard_cause{};  ///< the option that raised the guard; empty: none did
};

/// Their names, without logins.
std::vector<std::string> names_of(const ServerOptions& options);

/// Identifies this server set in a lease handle.
std::string fingerprint(const ServerOptions& options);

/// How many descriptors a holder process with these servers opens, with some spare.
std::size_t descriptors_of_holder(const ServerOptions& options);

}  // namespace redlock::commands
