#pragma once

#include <sys/types.h>

#include "child/channel.hpp"
#include "child/signals.hpp"
#include "run/acquisition.hpp"

namespace redlock::run {

/// The life of a holder process that keeps a lease for a process that is not its child: acquires,
/// reports through `channel` what the script gets, closes the caller's descriptors, renews while
/// the process lives, and releases when it has ended. A lost lease stops the process and its
/// descendants as the plan says; a lease that another process released ends the holder process
/// silently. `front`: the front process. Never returns.
[[noreturn]] void keep_while_pid(const SessionOptions& about, AcquireOptions& options,
                                 child::Channel channel, child::SignalGate& gate, pid_t front);

}  // namespace redlock::run
