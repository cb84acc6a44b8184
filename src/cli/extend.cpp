#include "commands/extend.hpp"

#include "cli/command_session.hpp"
#include "cli/commands.hpp"
#include "cli/lease_source.hpp"
#include "cli/option_rows.hpp"
#include "cli/read_lock_options.hpp"
#include "core/validity.hpp"

namespace redlock::cli {

commands::Finish extend_command(const Settings& settings) {
  commands::ServerOptions servers = read_server_options(settings);
  const Ttl ttl = require_ttl(
      settings,
      TtlDemands{.server_timeout = servers.timeout, .grace = Duration::zero(), .supervised = false},
      ": how long the lease is to last from now on");
  raise_restart_guard(settings, servers, option::ttl, ttl.length());
  const commands::ExtendOptions options{.lease = find_lease(settings, servers), .ttl = ttl};
  commands::Session session(session_options(settings), servers,
                            servers.timeout.value_or(default_server_timeout(ttl)));
  return commands::extend(session, options);
}

}  // namespace redlock::cli
