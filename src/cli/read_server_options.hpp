#pragma once

#include "cli/settings.hpp"
#include "run/servers.hpp"

namespace redlock::cli {

/// Throws CommandError. Config when no server is set at all, a URL is wrong, a server that must be
/// alone stands beside another, or a password, CA, certificate or key file cannot be used. Usage
/// when a URL on the command line is wrong or holds a password, or an option needs a feature that
/// none of the servers has (TLS, replicas). Warns when certificate verification is off.
run::ServerOptions read_server_options(const Settings& settings);

/// The time for one server's answer in a command that has no ttl of its own: the longest default,
/// unless the user set one.
Duration timeout_without_ttl(const run::ServerOptions& options);

/// Makes the restart guard, where there is one, at least as long as a lease may last (`span`):
/// otherwise a server that restarted would vote again before the lease that it forgot has ended
/// (PROTOCOL R7). Reports with -v that the other clients need the same. `option`: the source of the
/// span.
void raise_restart_guard(const Settings& settings, run::ServerOptions& options,
                         const OptionRow& option, Duration span);

}  // namespace redlock::cli
