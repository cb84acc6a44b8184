#pragma once

#include "child/channel.hpp"
#include "child/signals.hpp"
#include "run/acquisition.hpp"

namespace redlock::run {

/// The life of a holder that keeps a lease for a process that is not its child: acquires, reports what the script gets through `channel`,
/// lets go of the caller's descriptors, renews while the process lives, and releases when it has ended. A lease that is lost stops the
/// process and its descendants as the plan says; one that somebody released ends the holder without a word. Never returns.
[[noreturn]] void keep_while_pid(const SessionOptions& about, AcquireOptions& options, child::Channel channel, child::SignalGate& gate);

}  // namespace redlock::run
