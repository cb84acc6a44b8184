#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/settings.hpp"
#include "store/local/place.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/tls_context.hpp"

namespace redlock::cli {

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

/// Throws CommandError: config when no server is set at all, a URL is wrong, `local:` stands beside another server, or a password, CA,
/// certificate or key file cannot be used; usage when a URL on the command line is wrong or holds a password, or an option asks for what
/// none of the servers has (TLS, replicas). Warns when certificates are not verified.
ServerOptions read_server_options(const Settings& settings);

/// Makes the restart guard, where there is one, at least as long as a lease may last (`span`): otherwise a server that restarted votes
/// again before the lease that it forgot has ended (PROTOCOL R7). Says with -v that the other clients need the same. `option`: where
/// the span comes from.
void raise_restart_guard(const Settings& settings, ServerOptions& options, const OptionRow& option, Duration span);

/// Their names, without logins.
std::vector<std::string> names_of(const ServerOptions& options);

/// What identifies this set of servers in a lease handle.
std::string fingerprint(const ServerOptions& options);

}  // namespace redlock::cli
