#include "cli/lease_output.hpp"

#include "cli/commands.hpp"
#include "cli/option_rows.hpp"
#include "commands/command_error.hpp"
#include "commands/lease_file.hpp"

namespace redlock::cli {
namespace {

/// A script continues after status 0, as if it had the lock. So a 0 counts only on the command
/// line: elsewhere it was set for the commands of `run`.
int read_conflict_exit_code(const Settings& settings, int exit_code) {
  const bool counts = exit_code != 0 || settings.is_on_line(option::conflict_exit_code);
  return counts ? exit_code : to_int(ExitCode::busy);
}

std::optional<std::string> read_token_file(const Settings& settings) {
  auto path = settings.get(option::token_file);
  if (!path) return path;
  if (const auto checked = commands::check_lease_file_target(*path); !checked) {
    throw CommandError(ExitCode::config, "--token-file: " + checked.error());
  }
  return path;
}

}  // namespace

void check_lease_output(const Settings& settings) {
  if (settings.get(option::export_lease) && settings.is_on_line(option::json))
    throw CommandError(ExitCode::usage, "--json and --export cannot be combined");
}

void read_lease_output(const Settings& settings, commands::AcquireOptions& options) {
  options.conflict_exit_code = read_conflict_exit_code(settings, options.conflict_exit_code);
  options.prints_export = settings.get(option::export_lease);
  options.token_file = read_token_file(settings);
}

commands::SessionOptions lease_session_options(const Settings& settings) {
  commands::SessionOptions session = session_options(settings);
  // With --export stdout is read by a shell, so a setting for JSON is ignored.
  if (settings.get(option::export_lease)) session.json = false;
  return session;
}

}  // namespace redlock::cli
