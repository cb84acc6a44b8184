#pragma once

#include "cli/settings.hpp"
#include "run/finish.hpp"

namespace redlock::cli {

/// The commands, except `run` (run/run.hpp). Each reads its options from the settings, does its
/// work and returns how to exit. Each may throw CommandError.
run::Finish acquire_command(const Settings& settings, const run::Start& start);
run::Finish extend_command(const Settings& settings);
run::Finish release_command(const Settings& settings);
run::Finish stop_command(const Settings& settings);
run::Finish status_command(const Settings& settings, const run::Start& start);
run::Finish doctor_command(const Settings& settings);
run::Finish completion_command(const CommandLine& line);

}  // namespace redlock::cli
