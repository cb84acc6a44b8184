#pragma once

#include "core/exit_code.hpp"
#include "guard/signals.hpp"

namespace redlock::commands {

/// How a command ends: with an exit code, or by dying of the signal that its child command died of
/// (or that ended its wait).
struct ExitAs {
  int exit_code = 0;
  int signal = 0;  ///< not 0: the signal to die of
};

/// The exit code as a shell shows it: 128 + signal if a signal ends us.
inline int exit_code_of(const ExitAs& exit_as) noexcept {
  return exit_as.signal != 0 ? signal_exit_base + exit_as.signal : exit_as.exit_code;
}

/// What a command needs to know about how the program was started.
struct Start {
  const guard::InheritedSignals& inherited;
  int argc;
  char** argv;
};

}  // namespace redlock::commands
