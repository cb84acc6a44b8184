#pragma once

#include "cli/settings.hpp"
#include "commands/exit_as.hpp"
#include "commands/session.hpp"

namespace redlock::cli {

/// The session options for the command of these settings.
commands::SessionOptions session_options(const Settings& settings);

/// The commands, except `run` (commands/run.hpp). Each reads its options from the settings, does
/// its work and returns how to exit. Each may throw CommandError.
commands::ExitAs acquire_command(const Settings& settings, const commands::Start& start);
commands::ExitAs hold_command(const Settings& settings, const commands::Start& start);
commands::ExitAs extend_command(const Settings& settings);
commands::ExitAs release_command(const Settings& settings);
commands::ExitAs stop_command(const Settings& settings);
commands::ExitAs status_command(const Settings& settings, const commands::Start& start);
commands::ExitAs doctor_command(const Settings& settings);
commands::ExitAs completion_command(const CommandLine& line);

}  // namespace redlock::cli
