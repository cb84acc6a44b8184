#pragma once

#include "child/signals.hpp"

namespace redlock::run {

/// How a command ends: with an exit code, or by dying of the signal that its child command died of
/// (or that ended its wait).
struct Finish {
  int exit_code = 0;
  int signal = 0;  ///< not 0: die of it
};

/// How the program was started, as far as a command must pass it on or change it.
struct Start {
  const child::InheritedSignals& inherited;
  int argc;
  char** argv;
};

}  // namespace redlock::run
