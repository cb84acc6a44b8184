#pragma once

#include "child/signals.hpp"

namespace redlock::run {

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

}  // namespace redlock::run
