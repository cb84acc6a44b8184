#include "commands/release.hpp"

#include "cli/command_session.hpp"
#include "cli/commands.hpp"
#include "cli/lease_source.hpp"
#include "cli/option_rows.hpp"
#include "cli/read_lock_options.hpp"
#include "commands/command_error.hpp"
#include "commands/this_user.hpp"

namespace redlock::cli {

commands::Finish release_command(const Settings& settings) {
  const commands::ServerOptions servers = read_server_options(settings);
  const auto fence = settings.get(option::if_fence);
  const bool force = settings.get(option::force);
  if (fence && !force) throw CommandError(ExitCode::usage, "--if-fence goes with --force");
  Owner breaker = commands::this_user();
  if (const auto reason = settings.get(option::reason)) {
    if (!force) Settings::refuse(*settings.find(option::reason), "goes with --force");
    breaker.note = *reason;
  }
  const bool foreign = settings.get(option::foreign);
  if (foreign && !force) Settings::refuse(*settings.find(option::foreign), "goes with --force");
  if (foreign && fence)
    Settings::refuse_both(*settings.find(option::foreign), *settings.find(option::if_fence));
  commands::Session session(session_options(settings), servers, timeout_without_ttl(servers));
  if (!force) return commands::release(session, find_lease(settings, servers));
  std::vector<Resource> resources = read_keys(settings);
  if (fence && resources.size() > 1)
    throw CommandError(ExitCode::usage, "--if-fence is for one key at a time");
  commands::BreakOptions options;
  options.resources = std::move(resources);
  if (fence) options.only_if = Fence(*fence);
  options.breaker = std::move(breaker);
  options.and_foreign = foreign;
  return commands::break_locks(session, options);
}

}  // namespace redlock::cli
