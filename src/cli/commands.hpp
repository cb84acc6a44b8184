#pragma once

#include "child/signals.hpp"
#include "cli/settings.hpp"

namespace redlock::cli {

/// How a command ends: with an exit code, or by dying of a signal as what it ran (or what ended its wait) did.
struct Finish {
  int exit_code = 0;
  int signal = 0;  ///< not 0: die of it
};

/// What the program was started with and a command must hand on or change.
struct Start {
  const child::InheritedSignals& inherited;
  int argc;
  char** argv;
};

/// The commands. Each reads its options from the settings, does its work and says how to end; each may throw CommandError.
Finish run_command(const Settings& settings, const Start& start);
Finish acquire_command(const Settings& settings, const Start& start);
Finish extend_command(const Settings& settings);
Finish release_command(const Settings& settings);
Finish status_command(const Settings& settings);
Finish doctor_command(const Settings& settings);

}  // namespace redlock::cli
