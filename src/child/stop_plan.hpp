#pragma once

#include "support/boot_clock.hpp"

namespace redlock::child {

/// What happens to a command whose lease is lost or about to be.
enum class OnLost {
  kill,  ///< stop signal, then KILL
  term,  ///< stop signal only: it may outlive the lease
  warn,  ///< nothing: it may outlive the lease
};

/// When and how a command is stopped, relative to the deadline of its lease.
struct StopPlan {
  Duration grace;   ///< between the stop signal and KILL
  Duration margin;  ///< between KILL and the deadline
  int stop_signal = 0;
  OnLost on_lost = OnLost::kill;
};

}  // namespace redlock::child
