#include "cli/command_session.hpp"

#include "cli/option_rows.hpp"

namespace redlock::cli {

commands::SessionOptions session_options(const Settings& settings) {
  // A command that acquires or extends must check that no server is listed twice, and that none has
  // lost its data since it granted the lease.
  const bool identifies_servers = (settings.line().command->bit & (takes_lock | for_extend)) != 0;
  return {.console = make_console(settings),
          .json = settings.get(option::json),
          .identifies_servers = identifies_servers};
}

output::Console make_console(const Settings& settings) {
  const bool locks = (settings.line().command->bit & option::syslog.spec().commands) != 0;
  return {settings.get(option::quiet), settings.get(option::verbose),
          locks && settings.get(option::syslog)};
}

}  // namespace redlock::cli
