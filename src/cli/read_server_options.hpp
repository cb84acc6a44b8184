#pragma once

#include "cli/settings.hpp"
#include "commands/servers.hpp"

namespace redlock::cli {

/// Reads the servers and the options for them. Warns if certificate verification is off. Throws
/// CommandError. Config: no server is set, a URL is wrong, a server that must be the only one is
/// combined with another, or a password, CA, certificate or key file cannot be used. Usage: a URL
/// on the command line is wrong or contains a password, or an option needs a feature that none of
/// the servers has (TLS, replicas).
commands::ServerOptions read_server_options(const Settings& settings);

/// The server timeout of a command without a ttl: --server-timeout, or else the longest default.
Duration timeout_without_ttl(const commands::ServerOptions& options);

/// Raises the restart guard, if it is enabled, to at least `span`, the longest possible lease:
/// otherwise a restarted server could vote again before a lease that it forgot has expired
/// (PROTOCOL R7). With -v, or if the guard is on the command line, it reports that the other
/// clients need the same guard. `option` is the origin of `span`, for messages.
void raise_restart_guard(const Settings& settings, commands::ServerOptions& options,
                         const OptionRow& option, Duration span);

}  // namespace redlock::cli
