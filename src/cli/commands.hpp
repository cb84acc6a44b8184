#pragma once

#include "cli/settings.hpp"
#include "commands/finish.hpp"
#include "commands/session.hpp"

namespace redlock::cli {

/// The session options for the command of these settings.
commands::SessionOptions session_options(const Settings& settings);

/// The commands, except `run` (commands/run.hpp). Each reads its options from the settings, does
/// its work and returns how to exit. Each may throw CommandError.
commands::Finish acquire_command(const Settings& settings, const commands::Start& start);
commands::Finish extend_command(const Settings& settings);
commands::Finish release_command(const Settings& settings);
commands::Finish stop_command(const Settings& settings);
commands::Finish status_command(const Settings& settings, const commands::Start& start);
commands::Finish doctor_command(const Settings& settings);
commands::Finish completion_command(const CommandLine& line);

}  // namespace redlock::cli
