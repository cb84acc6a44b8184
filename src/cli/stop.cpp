#include "commands/stop.hpp"

#include "cli/command_session.hpp"
#include "cli/commands.hpp"
#include "cli/option_rows.hpp"
#include "cli/read_lock_options.hpp"
#include "commands/command_error.hpp"
#include "commands/this_user.hpp"

namespace redlock::cli {
namespace {

commands::StopOptions read_stop_options(const Settings& settings) {
  std::vector<Resource> resources = read_keys(settings);
  if (resources.size() > 1) throw CommandError(ExitCode::usage, "stop is for one key at a time");
  commands::StopOptions options{.resource = std::move(resources.front()),
                                .wait = settings.get(option::stop_wait)};
  if (const auto slot = settings.get(option::slot)) options.slot = static_cast<std::size_t>(*slot);
  if (const auto fence = settings.get(option::if_fence)) options.only_if = Fence(*fence);
  const Owner user = commands::this_user();
  options.request = {
      .host = user.host, .user = user.user, .reason = settings.get(option::reason).value_or("")};
  return options;
}

}  // namespace

commands::Finish stop_command(const Settings& settings) {
  const commands::ServerOptions servers = read_server_options(settings);
  const commands::StopOptions options = read_stop_options(settings);
  commands::Session session(session_options(settings), servers, timeout_without_ttl(servers));
  return commands::stop(session, options);
}

}  // namespace redlock::cli
